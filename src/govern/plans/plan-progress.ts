/**
 * Tracks a decided plan while the agent makes its calls in order, each with its approval. A call out of order is an
 * ordinary call. A call that is blocked or fails ends the plan, and the remaining calls are no longer covered.
 */

import type { LedgerRecord } from "../../ledger/record.ts";
import type { ApprovalDoc } from "../approvals/approval.ts";
import { settleApproval } from "../approvals/requests.ts";
import { ENGINE_ACTOR } from "../core.ts";
import { stepKey } from "../document-keys.ts";
import { isExpired } from "../expiry.ts";
import type { StoreTx } from "../port/store.ts";
import type { RunDoc } from "../runs/run.ts";
import type { PlanDoc } from "./plan.ts";

/** Plan whose next call this is, and the approval created for it. */
export interface NextPlannedCall {
  plan: PlanDoc;
  request: ApprovalDoc | null;
  /** Steps of the earlier calls that the plan names as this call's dependencies. */
  depends_on: number[];
}

/** The plan's next call, made before an earlier one has ended. */
export interface EarlyPlannedCall {
  plan_id: string;
  /** Earlier step of the plan without an outcome. */
  step: number;
}

interface PlannedCalls {
  planned: NextPlannedCall | null;
  early: EarlyPlannedCall | null;
}

/**
 * Finds the plan whose next call this is. Its approval counts only after every earlier call of the plan has ended,
 * because a failure ends the plan. A call that needs no approval continues the plan at once.
 */
export function findNextPlannedCall(
  tx: StoreTx,
  run: Pick<RunDoc, "run_id" | "plans">,
  tool: string,
  args_hash: string,
  now: number,
): PlannedCalls {
  let early: EarlyPlannedCall | null = null;
  for (const id of run.plans ?? []) {
    const plan = tx.get("plans", id);
    if (plan?.status !== "approved" || isExpired(plan, now)) continue;
    const call = plan.calls[plan.next];
    if (call?.tool !== tool || call.args_hash !== args_hash) continue;
    const { steps = [] } = plan.internal;
    const open = steps.find((step) => tx.get("steps", stepKey(run.run_id, step))?.status === "intended");
    if (call.approval_id !== null && open !== undefined) {
      early ??= { plan_id: id, step: open };
      continue;
    }
    const request = call.approval_id === null ? undefined : tx.get("approvals", call.approval_id);
    const depends_on = call.depends_on.flatMap((position) => steps[position] ?? []);
    return { planned: { plan, request: request ?? null, depends_on }, early: null };
  }
  return { planned: null, early };
}

/** Advances the plan after its next call was accepted as `step`. The caller stores the run. */
export function advancePlan(tx: StoreTx, run: RunDoc, plan: PlanDoc, step: number): void {
  const next = plan.next + 1;
  const done = next >= plan.calls.length;
  tx.delete("approval_values", plan.internal.requests[plan.next]!.id);
  const internal = { ...plan.internal, steps: [...(plan.internal.steps ?? []), step] };
  tx.put("plans", plan.id, { ...plan, next, status: done ? "done" : plan.status, internal });
  if (done) removePlanFromRun(run, plan.id);
}

/** Ends a plan early, with its unused approvals. The caller stores the run. */
export function endPlan(
  tx: StoreTx,
  run: RunDoc,
  plan: PlanDoc,
  ended: { status: "ended" | "expired"; note: string; now: number },
): LedgerRecord[] {
  const { status, note, now } = ended;
  tx.put("plans", plan.id, { ...plan, status, note });
  removePlanFromRun(run, plan.id);
  const records: LedgerRecord[] = [];
  for (const { id } of plan.internal.requests) {
    tx.delete("approval_values", id);
    const made = tx.get("approvals", id);
    if (made?.status !== "approved") continue;
    const settled = settleApproval(
      tx,
      run,
      { ...made, note: `plan ${plan.id} ended` },
      { status: "expired", by: ENGINE_ACTOR, at_ms: now, detail: `request ${id}: plan ${plan.id} ended` },
    );
    records.push(settled.record);
  }
  return records;
}

export function removePlanFromRun(run: RunDoc, id: string): void {
  const left = (run.plans ?? []).filter((one) => one !== id);
  run.plans = left.length === 0 ? undefined : left;
}
