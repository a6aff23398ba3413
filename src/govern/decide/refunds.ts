/** Refunds limits and budgets after a verified undo. */
import { type RefundableCharge, refundedCounter } from "../../rules/policy/checks/counters.ts";
import { captureKey, stepKey } from "../document-keys.ts";
import type { StoreTx } from "../port/store.ts";
import type { StepDoc } from "../runs/run.ts";

/** Runs in the unit that records the undo and deletes the note of the charge, so that each charge is refunded once. */
export function refundUndone(tx: StoreTx, { run_id, step, intended_seq }: StepDoc, now_ms: number): void {
  refundCharges(tx, tx.get("payloads", stepKey(run_id, step))?.refunds ?? []);
  // A simulation refunds at the same time, under any policy it evaluates.
  const key = captureKey(intended_seq);
  const captured = tx.get("captures", key);
  if (captured !== undefined) tx.put("captures", key, { ...captured, undone_ms: now_ms });
}

export function refundCharges(tx: StoreTx, refunds: readonly RefundableCharge[]): void {
  tx.expect(refunds.map(({ key }) => ["counters", key] as const));
  for (const refund of refunds) {
    const less = refundedCounter(tx.get("counters", refund.key), refund);
    if (less !== null) tx.put("counters", refund.key, less);
  }
}
