/** Records the start and the end of an undo. The step, its counters and the ledger change together. */
import { adjustActiveSteps, releaseLogicalCall } from "../../govern/decide/active-steps.ts";
import { stepKey } from "../../govern/document-keys.ts";
import type { StoreTx } from "../../govern/port/store.ts";
import { appendRunRecord, stepFacts } from "../../govern/records.ts";
import type { StepDoc } from "../../govern/runs/run.ts";
import { removeUndoDeadline } from "../../govern/runs/undo-deadlines.ts";
import { forgetResourceCall } from "../../govern/traces/built-on.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import { cancelUndoApproval, type StepInProgress } from "./undo-approval.ts";

/** Changes `run` and `step` in place; the caller stores them. */
export function markBegun(
  { core, tx, run, step }: StepInProgress,
  actor: string,
  detail: string | undefined,
): LedgerRecord {
  if (step.status === "compensation_failed") run.compensation_failed--;
  // From now on no new step can satisfy its `requires` with this one.
  if (step.status !== "compensating") adjustActiveSteps(tx, step, -1);
  step.status = "compensating";
  step.error = null;
  return appendRunRecord(tx, run, {
    ...stepFacts(step),
    event: "compensating",
    actor,
    ts_ms: core.env.now(),
    reason: step.reason,
    detail,
  });
}

/** Changes `step` in place; the caller stores it. */
export function markUndone(tx: StoreTx, step: StepDoc, seq: number, unverified: boolean): void {
  step.status = "compensated";
  step.compensated_seq = seq;
  step.undo_covers = undefined;
  if (unverified) step.unverified = true;
  releaseLogicalCall(tx, step);
  removeUndoDeadline(tx, step);
  if (step.before_hash !== undefined) {
    tx.delete("touches", stepKey(step.run_id, step.step));
    forgetResourceCall(tx, step);
  }
  // The values were stored only for this undo.
  tx.delete("payloads", stepKey(step.run_id, step.step));
}

/** Records a step as undone without a tool call. Stores the step and the run. */
export function recordUndone(
  at: StepInProgress,
  actor: string,
  detail: string | undefined,
  unverified = false,
): LedgerRecord[] {
  const { core, tx, run, step } = at;
  const dropped = cancelUndoApproval(at);
  const begun = markBegun(at, actor, detail);
  const done = appendRunRecord(tx, run, {
    ...stepFacts(step),
    event: "compensated",
    actor,
    ts_ms: core.env.now(),
    reason: step.reason,
    detail,
  });
  markUndone(tx, step, done.seq, unverified);
  tx.put("steps", stepKey(run.run_id, step.step), step);
  tx.put("runs", run.run_id, run);
  return [...dropped, begun, done];
}
