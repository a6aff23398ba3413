/** Statements on what a newcomer meets: the demo, the console's frame, the command line's answers. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const beyondFirst = section("beyond", "At first sight", {
  "beyond.first.help-defaults": [33, "in the help of every command each option with a default shows it"],
  "beyond.first.json-lists": [37, "`--json` of a list is one JSON document, except where the help says one object a line"],
  "beyond.first.contain-words": [33, "`svc contain` says once of each step that is left why it was not undone"],
  "beyond.first.show-undo": [33, "`svc show` names the rollback only where something can be undone"],
  "beyond.first.link-words": [33, "a link that was used or has expired says which, and how to get another"],
  "beyond.first.undeclared-verdict": [33, "the playground's verdict on a tool that no manifest declares is block, whatever the policy says"],
  "beyond.first.halt-scoped": [33, "a halt of a part names what it blocks in one line that opens, and does not stay in sight"],
  "beyond.first.story": [24, "`npm start` shows an agent's work, made by real calls: refunds, mails, edits, a request that waits, a call that a flow blocked, an alert, a run that can be taken back"],
  "beyond.first.empty": [24, "`npm start -- --empty` starts without it"],
  "beyond.first.link": [24, "the demo prints a link that logs in as somebody who is no admin, in the demo only"],
  "beyond.first.link-spent": [24, "opening the link spends nothing; its button spends it, once, within ten minutes, on this machine only"],
  "beyond.first.run-page": [24, "a run's page leads with what the agent did, why, how it ended and the way back; hashes are under details, requests are links"],
  "beyond.first.folded": [24, "equal lines in a row are told once, with how many there are"],
  "beyond.first.rollback-dialog": [24, "the rollback dialog says what will happen, what will wait and what cannot be undone"],
  "beyond.first.halt-header": [24, "every page has Halt in its header for those who may, with scope and reason in one dialog"],
  "beyond.first.halt-banner": [24, "the banner says what is halted, by whom, since when, and lifts it"],
  "beyond.first.search": [24, "search from every page finds runs, tools, actors, requests and records, with and without scripts; an id leads to its page"],
  "beyond.first.alert-time": [24, "the alert of a failed undo bears the time of the failure"],
  "beyond.first.runs": [24, "`svc runs` tells the reason and the state, marks failures, and filters"],
  "beyond.first.report": [24, "`svc report` without `--out` prints; a file's ending that promises another format is an error"],
  "beyond.first.store-found": [24, "the store of a data folder is recognised, and another one that is asked for is refused with what to say"],
  "beyond.first.reads-make-nothing": [24, "a command that reads makes no file, and says so where there is no store"],
  "beyond.first.reference": [24, "the references of manifests, policies, commands, HTTP, records and errors are made from what the code goes by"],
  "beyond.first.site": [24, "`npm run site` makes static pages with a search out of the documents and the library's types, and fails on a dead link"],
  "beyond.first.library-reference": [24, "the library's reference is made from its types, and its examples run as they stand there"],
  "beyond.first.schema-line": [24, "drafts in YAML begin with the line by which editors find their schema"],
});
