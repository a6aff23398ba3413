/** Statements on undo that restores: reads before a call, conflicts, horizons, refunds. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const beyondBefore = section("beyond", "Before", {
  "beyond.before.told": [17, "an allowed call whose manifest has `before` is told `before: {tool, arguments}` in its decision, a blocked one is not"],
  "beyond.before.validated": [17, "`before` that writes, reads `$result`, matches every answer as absent or is not whole is refused with file, line and field"],
  "beyond.before.scope": [17, "a call is refused where the tool of its `before` is not in the run's scope"],
  "beyond.before.restores": [17, "`$before` values are put into the undo's arguments, and what was there is restored"],
  "beyond.before.absent": [17, "where nothing was there `when_absent` undoes the call, and without it the step is unrecoverable"],
  "beyond.before.expect": [17, "a path into `$before` in `verification.expect` stands for what was there"],
  "beyond.before.gateway": [17, "the gateway reads before it forwards and after success, and the step says `before_by: gateway`"],
  "beyond.before.library": [17, "the library reads with `read` in `run.call`, and the step says `before_by: library`"],
  "beyond.before.no-reader": [17, "a library call whose manifest needs a read and that was given none fails before anything is executed"],
  "beyond.plan.unread-said": [17, "where what is there was not read, no text of a plan says that the run is fully reversible"],
  "beyond.before.agent": [17, "over HTTP the agent reports `before` and `after`, and the step says `before_by: agent`"],
  "beyond.before.read-fails": [17, "a read that fails or is too long fails the step before anything is forwarded: `intended`, then `failed`"],
  "beyond.before.not-required": [17, "with `required: false` a failed read lets the call pass, and the step cannot be undone"],
  "beyond.before.http-without": [17, "over HTTP a success without `before` is accepted and not undoable"],
  "beyond.before.hashes": [17, "`before_hash` and `after_hash` are on the ledger, no value is"],
  "beyond.before.lossless": [17, "an answer that stands for bytes that are no text counts as a failed read: it would not restore them"],
  "beyond.before.sandbox": [17, "speculation, plans and replay take what is read before a call as there, made up from the manifest"],
  "beyond.before.several": [33, "a list in `before.args` reads once for each item; a read that fails answers `{error}`, and where all fail nothing was read"],
  "beyond.before.masked": [17, "below the role operator a plan shows `$before` values as `[before: n bytes]`"],
});

// biome-ignore format: one statement a line
export const beyondConflict = section("beyond", "Conflict", {
  "beyond.conflict.left-alone": [17, "an undo that meets a foreign write is left alone: `failed`, `conflict: true`, an error that begins `conflict:`, no record, the step still `succeeded`"],
  "beyond.conflict.flat": [17, "what a remote worker's beginning of an undo looks at does not grow with the calls of the run that stand"],
  "beyond.conflict.overlapped": [17, "where calls of one run overlapped on the same thing and what they read does not tell their order, their undos are left as conflicts"],
  "beyond.conflict.each-attempt": [17, "what is there is read again before each further attempt of an undo: foreign writes are left alone, and what took effect after all is not done again"],
  "beyond.conflict.never-lost": [17, "over generated histories of several runs and a foreign writer no undo replaces what its call did not leave"],
  "beyond.conflict.as-before": [17, "what is already as before the call is recorded as compensating and compensated, and nothing is called"],
  "beyond.conflict.not-checked": [17, "where nobody can read, the step is failed with `conflict: not checked`"],
  "beyond.conflict.plan": [17, "the plan shows was, is, would be and `current_hash`, and is not fully reversible with a conflict"],
  "beyond.conflict.ignore": [17, "what `ignore` names is not compared"],
  "beyond.conflict.overwrite": [17, "`overwrite` with a reason and the plan's `current_hash` undoes the step, recorded with who and why"],
  "beyond.conflict.overwrite-stale": [17, "an overwrite whose `current_hash` is no longer current is a 409, and one without reason or hash a 400"],
  "beyond.conflict.worker": [17, "a remote worker sends `current` when it begins, else 409"],
  "beyond.conflict.before-run": [33, "an overwrite with `to: before_run` restores what was there before the run's first change and records all the run's steps on it as undone, with who and why; the plan shows it"],
  "beyond.conflict.before-run-surfaces": [33, "HTTP, a remote worker, the library, the command line, the console and the gateway take `before_run`"],
  "beyond.conflict.console": [17, "the console shows was, is and would be, and overwrites on a reason"],
  "beyond.card.undo": [17, "the card of an undo says what it takes back and leaves, what is there now and would be, that it overwrites what was written since and on whose word, whether it is proven and when it closes"],
  "beyond.card.undo-changed": [17, "an approval of an undo is not used where what is there is not what its card showed: it ends, and a new request opens"],
  "beyond.conflict.cli": [17, "`svc rollback --overwrite` with `--current` and `--reason` goes over a conflict"],
  "beyond.conflict.gateway": [17, "`svc.execute_rollback` goes over a conflict with `overwrite`, `reason` and `current_hash`"],
});

// biome-ignore format: one statement a line
export const beyondHorizon = section("beyond", "Horizon", {
  "beyond.horizon.validated": [17, "`until` is a duration longer than nothing or a path to a time in `$result` or `$args`, and anything else is refused at its place"],
  "beyond.horizon.plan": [17, "a plan's undos carry `closes_ms`; one whose time has passed is `unrecoverable` with `closed: true` and is never tried"],
  "beyond.horizon.meanwhile": [17, "an undo whose time passes during a rollback is neither begun nor tried again, and older steps are undone all the same"],
  "beyond.horizon.route": [17, "`GET /v1/horizon` lists undos that close, soonest first, by `within`, `limit` and `cursor`"],
  "beyond.horizon.cli": [17, "`svc horizon` lists them, with `--within`"],
  "beyond.horizon.alert-late": [33, "`undo_closing` is raised `alerts.undo_closing` before the end, or when a tenth of the undo's time is left, whichever is later"],
  "beyond.horizon.told": [17, "an overview tile, the metric `svc_undo_closing` and the alert `undo_closing` tell what closes next"],
});

// biome-ignore format: one statement a line
export const beyondRefund = section("beyond", "Refund", {
  "beyond.refund.limit": [17, "with `refund: true` a limit gets back what an undo that the server read back took back, once"],
  "beyond.refund.worker": [17, "what a remote worker undid and read back gives nothing back"],
  "beyond.refund.unproven": [17, "an undo without a read-back, or whose read-back failed, gives nothing back"],
  "beyond.refund.window": [17, "a budget gets the amount back into the window in which the call was counted, and no other"],
  "beyond.refund.simulated": [17, "a simulation of the policy in force gives back what was given back, when it was"],
  "beyond.refund.validated": [17, "`refund` is true or false, and turning it on is a looser policy"],
});

// biome-ignore format: one statement a line
export const beyondPacks = section("beyond", "Packs", {
  "beyond.packs.example": [17, "`examples/gateway` takes back to the byte what was written over, edited, moved and made, and leaves foreign writes alone"],
  "beyond.packs.drafts": [17, "`svc init` drafts what was tried for tools that are as they were tried, and marks the rest as guessed"],
  "beyond.packs.tried": [17, "each pack's `before`, compensation and read-back restores against the real server, or the report says what it does not"],
  "beyond.packs.moves": [33, "the undo of a move reads both ends first, to the byte: another's file at either place is a conflict, and a folder that cannot be told from another's is listed"],
  "beyond.packs.names": [33, "a moved file that comes back under a name of another Unicode form is listed as failed, or comes back under its exact name"],
  "beyond.packs.modes": [33, "`examples/gateway` restores setuid and setgid bits, links a file's two names again, and lists a file whose other name is gone"],
  "beyond.packs.folders": [33, "a folder that the run made is removed or listed, with its empty parents; one that was there is neither"],
  "beyond.packs.drift": [17, "a server whose tools or their schemas changed fails the test of its pack"],
});
