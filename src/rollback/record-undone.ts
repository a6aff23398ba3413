/** Recording that a step is being undone, and that it is: the step, its counters and the ledger change together. */
import { unlistClosing } from "../engine/closing.ts";
import { stepKey } from "../engine/keys.ts";
import { changeStanding, releaseLogicalCall } from "../engine/outcome.ts";
import { appendRunRecord, stepFacts } from "../engine/records.ts";
import type { LedgerRecord } from "../ledger/record.ts";
import type { StepDoc } from "../model/run.ts";
import type { Tx } from "../port/store.ts";
import { dropConsent, type StepAtHand } from "./consent.ts";

/** Changes `run` and `step` in place; the caller stores them. */
export function markBegun(
  { core, tx, run, step }: StepAtHand,
  actor: string,
  detail: string | undefined,
): LedgerRecord {
  if (step.status === "compensation_failed") run.compensation_failed--;
  // From here on nothing new can build on the step by requiring its tool.
  if (step.status !== "compensating") changeStanding(tx, step, -1);
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
export function markUndone(tx: Tx, step: StepDoc, seq: number, unverified: boolean): void {
  step.status = "compensated";
  step.compensated_seq = seq;
  step.undo_covers = undefined;
  if (unverified) step.unverified = true;
  releaseLogicalCall(tx, step);
  unlistClosing(tx, step);
  if (step.before_hash !== undefined) tx.delete("touches", stepKey(step.run_id, step.step));
  // Kept for this undo alone.
  tx.delete("payloads", stepKey(step.run_id, step.step));
}

/** Records a step as undone for which nothing is called. Stores the step and the run. */
export function recordUndone(
  at: StepAtHand,
  actor: string,
  detail: string | undefined,
  unverified = false,
): LedgerRecord[] {
  const { core, tx, run, step } = at;
  const dropped = dropConsent(at);
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
