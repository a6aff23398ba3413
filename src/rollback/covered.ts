/**
 * Restoring what was there before a run: the undo of the run's oldest step on a resource is carried out, and covers its
 * newer steps on that resource. All of them are recorded as undone in one unit.
 */
import { loadStep } from "../engine/load-run.ts";
import { refundUndone } from "../engine/refunds.ts";
import type { LedgerRecord } from "../ledger/record.ts";
import { STANDING } from "../model/run.ts";
import type { StepAtHand } from "./consent.ts";
import { recordUndone } from "./record-undone.ts";

/** For the record of the step whose undo is carried out. */
export const coveredText = (covers: readonly number[] | undefined): string =>
  covers === undefined || covers.length === 0
    ? ""
    : `, restoring what was there before this run (with it step ${covers.join(", ")})`;

/** `verified`: the service itself read back that the state is restored. */
export function undoCovered(
  { core, tx, run, step }: StepAtHand,
  covers: readonly number[],
  actor: string,
  { unverified = false, verified = false } = {},
): LedgerRecord[] {
  return covers.flatMap((n) => {
    const covered = loadStep(tx, run.run_id, n);
    if (!STANDING.has(covered.status)) return [];
    if (verified) refundUndone(tx, covered, core.env.now());
    const detail = `undone with step ${step.step}, which restored what was there before this run`;
    return recordUndone({ core, tx, run, step: covered }, actor, detail, unverified);
  });
}
