/** Statements of the core document: the states of steps, approvals and halts, and the rules of rollback. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const coreStepStates = section("core", "States: Step", {
  "core.step-state.intended": [2, "an intent decided `allow` or `would_block` makes a step in status `intended`"],
  "core.step-state.intended-record": [2, "the ledger gets `intended` when the step is made"],
  "core.step-state.would-block-record-first": [2, "in observe or advise mode the ledger gets `would_block` before `intended`"],
  "core.step-state.blocked-record": [2, "an intent decided `block` makes no step and writes `blocked`"],
  "core.step-state.succeeded": [2, "an outcome `succeeded` moves the step to `succeeded`"],
  "core.step-state.failed": [2, "an outcome `failed` moves the step to `failed` and records the error"],
  "core.step-state.uncertain": [2, "an outcome `uncertain` moves the step to `uncertain` and lists it in `unresolved`"],
  "core.step-state.second-outcome-409": [2, "a second outcome report is a 409 and changes nothing"],
  "core.step-state.resolve-intended": [2, "an operator can resolve an `intended` step to `succeeded` or `failed`"],
  "core.step-state.resolve-uncertain": [2, "an operator can resolve an `uncertain` step to `succeeded` or `failed`"],
  "core.step-state.resolve-needs-note": [2, "resolving needs a note"],
  "core.step-state.resolve-record": [2, "resolving writes the new status to the ledger with a detail `resolved by <actor>: <note>`"],
  "core.step-state.resolve-result-enables-undo": [4, "a result given when resolving makes a `succeeded` step undoable"],
  "core.step-state.compensating": [4, "a rollback moves a `succeeded` step to `compensating`"],
  "core.step-state.compensating-record-first": [4, "the ledger gets `compensating` before the compensation runs"],
  "core.step-state.unverified": [4, "where the declared read-back has no verifier, the step ends `compensated` with ledger `unverified`"],
  "core.step-state.unverified-not-complete": [4, "an unverified step is listed under `unverified` and the report is not complete"],
  "core.step-state.verified": [4, "a read-back that matches ends in `compensated` with ledger `verified`"],
  "core.step-state.verification-failed": [4, "a read-back that never matches within its retries ends in `compensation_failed` with ledger `verification_failed`"],
  "core.step-state.first-mismatch": [4, "the `verification_failed` record tells the first mismatch"],
  "core.step-state.verification-arguments": [4, "verification arguments that cannot be resolved end in `compensation_failed`, and the detail of `verification_failed` says so"],
  "core.step-state.compensation-failed": [4, "a compensation that fails in all attempts ends in `compensation_failed` with the error and the number of attempts"],
  "core.step-state.retry-same-key": [4, "a further rollback takes a `compensation_failed` step to `compensating` again with the same idempotency key"],
  "core.step-state.compensated-skipped": [4, "a further rollback skips a `compensated` step"],
  "core.step-state.gateway-timeout-uncertain": [5, "the gateway journals an upstream's timeout as `uncertain`"],
  "core.step-state.gateway-transport-uncertain": [5, "the gateway journals an upstream's transport error as `uncertain`"],
});

// biome-ignore format: one statement a line
export const coreApprovalStates = section("core", "States: Approval request", {
  "core.approval-state.pending": [3, "an intent that needs approval and finds none usable opens a `pending` request"],
  "core.approval-state.intent-blocked": [3, "the intent that opened a request is blocked and its reason names the request's id"],
  "core.approval-state.notification": [8, "opening a request may send a notification"],
  "core.approval-state.approve": [3, "an approver or higher can approve a `pending` request"],
  "core.approval-state.approve-records": [3, "approving records `decided_by` and the optional `note`"],
  "core.approval-state.approve-ledger": [3, "approving writes `approved` with the approver as actor"],
  "core.approval-state.deny": [3, "an approver or higher can deny a `pending` request"],
  "core.approval-state.consumed": [3, "the same tool with the same arguments, asked again after approval, is allowed and consumes the approval"],
  "core.approval-state.consumed-ledger": [3, "consuming writes `approved` with the engine as actor"],
  "core.approval-state.used-once": [3, "after an approval is consumed the same intent is blocked again and needs a new request"],
  "core.approval-state.other-arguments": [3, "an approval does not cover other arguments; they need a new request"],
});

// biome-ignore format: one statement a line
export const coreCompensationApproval = section("core", "States: Compensation approval", {
  "core.compensation-approval.waits": [4, "a compensation with `requires_approval: true` waits for an approval"],
  "core.compensation-approval.snapshot": [3, "the need for approval is taken over from the manifest as the step runs, and edits made afterwards have no bearing on it"],
  "core.compensation-approval.cli-all": [4, "`--approve-compensations` approves all of them at once on the command line"],
  "core.compensation-approval.gateway-all": [5, "`approve_compensations: true` approves all of them at once on the gateway"],
  "core.compensation-approval.operator-decision": [4, "approving all at once takes the operator role"],
});

// biome-ignore format: one statement a line
export const coreHaltStates = section("core", "States: Halt", {
  "core.halt-state.by-route": [2, "`POST /v1/halt` halts"],
  "core.halt-state.by-cli": [2, "`svc halt add` halts"],
  "core.halt-state.by-gateway": [5, "the gateway tool `svc.halt` halts"],
  "core.halt-state.by-file": [2, "the kill-switch file halts as long as it exists"],
  "core.halt-state.resume-route": [2, "`POST /v1/resume` lifts halts"],
  "core.halt-state.lift-one": [2, "`svc halt lift` lifts one halt by id"],
  "core.halt-state.lift-all": [2, "`svc halt lift` can lift all halts"],
  "core.halt-state.resume-gateway": [5, "the gateway tool `svc.resume` lifts halts"],
  "core.halt-state.file-removed": [2, "removing the kill-switch file lifts its halt"],
  "core.halt-state.reason-text": [2, "while halted, a new intent is blocked with the reason `kill switch: <reason>`"],
  "core.halt-state.rollback-works": [4, "rollbacks work while halted"],
});

// biome-ignore format: one statement a line
export const coreRollbackRules = section("core", "States: Rollback rules", {
  "core.rollback.newest-first": [4, "standing steps are undone from the newest to the oldest"],
  "core.rollback.one-at-a-time": [4, "no two compensations of a run run at the same time"],
  "core.rollback.dependents-first-requires": [4, "a step is not undone while a step that needs it by `requires` stands"],
  "core.rollback.dependents-first-depends-on": [4, "a step is not undone while a step that needs it by `depends_on` stands"],
  "core.rollback.deferred-reported": [4, "a step held back by a dependent is reported as `deferred`"],
  "core.rollback.independents-go-on": [4, "steps that are independent of a deferred one are still undone"],
  "core.rollback.irreversible-reported": [4, "irreversible steps are reported as impossible to undo"],
  "core.rollback.unknown-not-guessed": [4, "a step with an unknown outcome stays `unresolved`; nothing is guessed"],
  "core.rollback.rerun-skips-compensated": [4, "running again skips what is compensated"],
  "core.rollback.rerun-retries-failed": [4, "running again retries what failed, with the same idempotency key"],
  "core.rollback.retries-range": [4, "`--retries` takes 1 to 10 and refuses anything else"],
  "core.rollback.retries-backoff": [4, "attempts are spaced by exponential backoff with jitter"],
  "core.rollback.retries-same-key": [4, "all attempts carry the same idempotency key"],
  "core.rollback.readback-arguments": [4, "the verification tool's arguments come from the original call and its result"],
  "core.rollback.readback-expect": [4, "the read answer is compared with `expect`"],
  "core.rollback.readback-backoff-doubles": [4, "a mismatch waits `backoff_ms`, doubled each time, up to `retries`"],
  "core.rollback.plan-is-dry": [4, "`svc plan <run>` and `GET /v1/runs/{id}/plan` change nothing"],
  "core.rollback.plan-gateway-dry": [5, "the gateway tool `svc.plan_rollback` changes nothing"],
  "core.rollback.plan-exit-2": [4, "exit code 2 of `svc plan` tells of a run that is not fully reversible"],
  "core.rollback.plan-text-no-residue": [4, "the plain-text plan leaves residue out; the JSON has it"],
  "core.rollback.gateway-readback": [5, "`svc.execute_rollback` reads back through the upstream"],
  "core.rollback.gateway-attempts": [5, "`svc.execute_rollback` makes 3 attempts from a base of 250 ms for the compensation"],
  "core.rollback.library-verifier": [4, "`run.rollback` reads back when a `verifier` is passed"],
  "core.rollback.reader-cmd-input": [4, "`svc rollback --reader-cmd <cmd>` gives the command `{tool, arguments}` as JSON on stdin"],
  "core.rollback.reader-cmd-output": [4, "the reader command prints the tool's JSON result"],
  "core.rollback.reader-cmd-exit": [4, "a reader command that exits non-zero counts as a failed read"],
  "core.rollback.reader-cmd-not-json": [4, "a reader command whose output is not JSON counts as a failed read"],
  "core.rollback.no-reader-unverified": [4, "`svc rollback` with a declared read-back and no `--reader-cmd` leaves the step `unverified` and exits 2"],
  "core.rollback.verify-cmd-separate": [4, "`--verify-cmd` is a check of its own and does not stand in for the read-back"],
  "core.rollback.job-reader": [4, "the server's job reads back when started with `SVC_READER_CMD`"],
  "core.rollback.job-no-reader": [4, "without `SVC_READER_CMD` the server's job leaves such steps `unverified`"],
  "core.rollback.verify-cmd-input": [4, "after a compensation that succeeded, `--verify-cmd` gets the compensation's JSON on stdin"],
  "core.rollback.verify-cmd-exit-0": [4, "exit 0 of the verify command confirms the compensation"],
  "core.rollback.verify-cmd-fails": [4, "any other end of the verify command fails the compensation"],
  "core.rollback.call-json": [4, "the compensation call is JSON with `run_id`, `step`, `tool`, `original_tool`, `args` and `idempotency_key`"],
  "core.rollback.cli-stdin": [4, "the command line's compensator gets the call on stdin"],
  "core.rollback.gateway-calls-tool": [5, "on the gateway a compensation is a call of the compensation tool at the upstream"],
  "core.rollback.gateway-key-in-metadata": [5, "the gateway also sends the key in the metadata of the upstream call"],
  "core.rollback.server-job": [4, "with `SVC_COMPENSATOR_CMD` the server rolls back in a job"],
});
