/**
 * Restores the state from before a run. The undo of the run's oldest step on a resource also covers its newer steps on
 * that resource; all of them are recorded as undone in one transaction.
 */
import { refundUndone } from "../../govern/decide/refunds.ts";
import { loadStep } from "../../govern/runs/load-run.ts";
import { ACTIVE_STEP_STATUSES } from "../../govern/runs/run.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import { recordUndone } from "./record-undone.ts";
import type { StepInProgress } from "./undo-approval.ts";

/** Detail for the record of the step whose undo runs. */
export const coveredText = (covers: readonly number[] | undefined): string =>
  covers === undefined || covers.length === 0
    ? ""
    : `, restoring the state from before this run (together with step ${covers.join(", ")})`;

/** `verified`: the service itself confirmed that the state is restored. */
export function undoCovered(
  { core, tx, run, step }: StepInProgress,
  covers: readonly number[],
  actor: string,
  { unverified = false, verified = false } = {},
): LedgerRecord[] {
  return covers.flatMap((n) => {
    const covered = loadStep(tx, run.run_id, n);
    if (!ACTIVE_STEP_STATUSES.has(covered.status)) return [];
    if (verified) refundUndone(tx, covered, core.env.now());
    const detail = `undone with step ${step.step}, which restored the state from before this run`;
    return recordUndone({ core, tx, run, step: covered }, actor, detail, unverified);
  });
}
