/** What goes beyond the first interface: a person can judge the call that waits. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const beyondCards = section("beyond", "1. A person can judge the call", {
  "beyond.card.args-kept": [18, "while a request is open, or approved and unused, those who may decide it see the call's arguments"],
  "beyond.card.credentials-out": [18, "credentials are taken out of what is kept, also under `card.reveal`"],
  "beyond.card.redaction-masked": [18, "paths under `audit.redaction` are masked on the card unless `card.reveal` names them"],
  "beyond.card.personal-data-stays": [18, "personal data stays on the card"],
  "beyond.card.args-deleted": [18, "the values are gone from every surface as soon as the request is consumed, denied, expired or withdrawn"],
  "beyond.card.files-clean": [18, "within an hour the values of an ended request are in no file of the store"],
  "beyond.card.purged": [18, "the values of a request go with its run"],
  "beyond.card.show-names": [18, "`approvals: {show: names}` keeps no value, only names"],
  "beyond.card.listing-names": [18, "`GET /v1/approvals` and every notification carry argument names only"],
  "beyond.card.no-leak": [18, "values kept for a request are in no log, notification, metric, trace or ledger"],
  "beyond.card.title": [18, "a manifest's `card.title` becomes the sentence, with the call's values in its places"],
  "beyond.card.fields": [18, "`card.fields` are shown by label, as `text`, `money`, `time`, `code` or `diff`"],
  "beyond.card.note": [18, "`card.note` stands on the card"],
  "beyond.card.not-given": [18, "a place whose value is missing shows `(not given)`"],
  "beyond.card.inert": [18, "no value breaks the sentence: length, markup, control and bidirectional characters"],
  "beyond.card.cause": [18, "the card says the exact cause: the score and its threshold, the rule's reason, what a content check found where"],
  "beyond.card.run-reason": [18, "the run's own reason stands beside the call's"],
  "beyond.card.irreversible": [18, "the card of an irreversible call says that nothing can take it back"],
  "beyond.card.route": [18, "`GET /v1/approvals/{id}/card` answers those whose vote counts or counted, delegates and admins; 404 to anybody else"],
  "beyond.card.same-text": [18, "the card is the same text over HTTP, in the console, in `svc approvals show` and from `svc.show_approval`"],
  "beyond.card.history": [18, "the card says what the agent did in the run so far, and what became of like requests"],
  "beyond.card.way-back": [18, "the card names the undo tool and what it cannot take back"],
  "beyond.card.hash-stable": [18, "`card_hash` changes only when what is judged changes; history, votes and times leave it as it is"],
  "beyond.card.hash-409": [18, "a `card_hash` that is no longer current is a 409, and nothing is decided"],
  "beyond.card.hash-recorded": [18, "`; card <hash>` is appended to the detail of `approved` or `denied` where it was sent, and only there"],
  "beyond.card.hash-sent": [18, "console and command line always send the hash of the card that they showed"],
  "beyond.cli.approvals-watch": [18, "`svc approvals watch` lists what waits, by names, as it comes and goes"],
});
