/** What a proven undo gives back to the counters of limits and budgets. */
import { givenBack, type Refundable } from "../model/policy/counters.ts";
import type { StepDoc } from "../model/run.ts";
import type { Tx } from "../port/store.ts";
import { captureKey, stepKey } from "./keys.ts";

/** Part of the unit that records the undo, which also drops the note of what was charged: nothing is given twice. */
export function refundUndone(tx: Tx, { run_id, step, intended_seq }: StepDoc, now_ms: number): void {
  giveBack(tx, tx.get("payloads", stepKey(run_id, step))?.refunds ?? []);
  // A simulation gives back at the same time, under whatever policy it tries.
  const key = captureKey(intended_seq);
  const captured = tx.get("captures", key);
  if (captured !== undefined) tx.put("captures", key, { ...captured, undone_ms: now_ms });
}

export function giveBack(tx: Tx, refunds: readonly Refundable[]): void {
  tx.expect(refunds.map(({ key }) => ["counters", key] as const));
  for (const refund of refunds) {
    const less = givenBack(tx.get("counters", refund.key), refund);
    if (less !== null) tx.put("counters", refund.key, less);
  }
}
