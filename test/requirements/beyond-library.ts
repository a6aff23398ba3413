/** The library where an agent's own process waits for people, looks ahead and continues with a run. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const beyondLibrary = section("beyond", "3.10 and 7.1 Library", {
  "beyond.library.wait": [18, "`run.call(.., {wait_for_approval})` waits for a person and makes the call once it is approved, embedded and remote"],
  "beyond.library.wait-denied": [18, "a call whose request is denied, or not decided in time, is not made"],
  "beyond.library.attach": [18, "`svc.attach(run_id)` goes on with a run of one's own, and with nobody else's"],
  "beyond.library.once": [22, "`run.intent` takes an `idempotency_key`, and says `replayed` where the answer was given before; over HTTP the header `Idempotency-Replayed: true` says it"],
  "beyond.library.preview": [18, "`run.preview(intent)` answers `allow`, `needs_approval` or `block` with reasons, and leaves nothing behind"],
  "beyond.library.fits": [18, "a remote call whose values do not fit into a request is told without them, and one whose `before` could not be told is not made"],
  "beyond.library.inexact": [18, "a call whose result or error JSON cannot hold exactly is told without the result, or with the error's broken characters replaced, and the caller gets its own result or error"],
  "beyond.library.busy": [23, "past a quota a connected library tells the outcome of a call that was made, and goes on waiting and rolling back, when the server says to ask again"],
  "beyond.library.whole-characters": [18, "errors and reasons are cut between characters on every surface: half of a character on the ledger is a record that strict readers cannot verify"],
  "beyond.self.allowed": [18, "with `self_rollback: true` on its key an agent may read the plan of, and roll back, its own run, and nobody else's"],
  "beyond.self.denied-undo": [33, "an undo whose tool a rule or a flow denies is not handed to the run's own agent: it is listed under `failed`, and an operator can begin it"],
  "beyond.self.refused": [18, "without `self_rollback` the plan and the rollback of one's own run are 403"],
  "beyond.self.key": [18, "`self_rollback` is a field of a key entry, shown only where it is true"],
  "beyond.self.reported": [18, "an undo carried out by the run's principal has `self-reported` in its detail"],
  "beyond.self.never-verified": [18, "an undo carried out by the run's principal is never `verified`: a read-back counts as unverified"],
  "beyond.self.waits": [18, "an undo by the run's principal waits for approvals like any other, and it cannot approve them all at once"],
  "beyond.self.no-overwrite": [18, "the run's principal cannot overwrite what was written since"],
  "beyond.self.halted": [18, "a halted agent begins no undo of its own"],
  "beyond.self.library": [18, "`run.plan` and `run.rollback` of a remote run work with such a key"],
  "beyond.plan.withdraw-surfaces": [18, "a plan is withdrawn with `svc.withdraw` and `run.withdraw(plan_id)`, too"],
  "beyond.library.approvals": [18, "`svc.approvals.get | wait | approve | deny` decides with the person's own credential"],
});
