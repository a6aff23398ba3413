/** Updates of a step that ends: the count of active steps, and the logical call that it holds. */
import { runToolKey, stepKey } from "../document-keys.ts";
import type { StoreTx } from "../port/store.ts";
import type { StepDoc } from "../runs/run.ts";

/** Updates the number of a tool's active steps, which `requires` checks. */
export function adjustActiveSteps(tx: StoreTx, step: StepDoc, by: 1 | -1): void {
  const key = runToolKey(step.run_id, step.tool);
  const used = tx.get("run_tools", key);
  tx.put("run_tools", key, {
    run_id: step.run_id,
    tool: step.tool,
    calls: used?.calls ?? 1,
    standing: Math.max(0, (used?.standing ?? 0) + by),
  });
}

/**
 * Releases a logical call, so that the agent can repeat it. If an earlier step is still active, that step holds it
 * again.
 */
export function releaseLogicalCall(tx: StoreTx, step: StepDoc): void {
  if (step.idempotency === null) return;
  const holder = tx.get("idempotency", step.idempotency);
  if (holder?.run_id !== step.run_id || holder.step !== step.step) return;
  for (let at = step.repeat_of; at !== undefined; ) {
    const earlier = tx.get("steps", stepKey(at.run_id, at.step));
    if (earlier !== undefined && earlier.status !== "failed" && earlier.status !== "compensated") {
      tx.put("idempotency", step.idempotency, at);
      return;
    }
    at = earlier?.repeat_of;
  }
  tx.delete("idempotency", step.idempotency);
}
