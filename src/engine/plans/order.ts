/**
 * A decided plan while its calls are made: in their order, each with the approval made for it. A call out of order
 * is an ordinary call. One that is refused or does not succeed ends the plan, and what is left is not covered.
 */
import type { LedgerRecord } from "../../ledger/record.ts";
import type { ApprovalDoc } from "../../model/approval.ts";
import type { PlanDoc } from "../../model/plan.ts";
import type { RunDoc } from "../../model/run.ts";
import type { Tx } from "../../port/store.ts";
import { moveApproval } from "../approvals/requests.ts";
import { ENGINE } from "../core.ts";
import { appendApprovalRecord } from "../records.ts";

/** The plan whose turn this call is, and the approval that was made for it. */
export interface PlannedNow {
  plan: PlanDoc;
  request: ApprovalDoc | null;
}

export function plannedNow(
  tx: Tx,
  run: Pick<RunDoc, "plans">,
  tool: string,
  args_hash: string,
  now: number,
): PlannedNow | null {
  for (const id of run.plans ?? []) {
    const plan = tx.get("plans", id);
    if (plan?.status !== "approved" || now >= plan.expires_ms) continue;
    const call = plan.calls[plan.next];
    if (call?.tool !== tool || call.args_hash !== args_hash) continue;
    const request = call.approval_id === null ? undefined : tx.get("approvals", call.approval_id);
    return { plan, request: request ?? null };
  }
  return null;
}

/** The call was accepted: the next one may come. The caller stores the run. */
export function advancePlan(tx: Tx, run: RunDoc, plan: PlanDoc): void {
  const next = plan.next + 1;
  const done = next >= plan.calls.length;
  tx.delete("approval_values", plan.internal.requests[plan.next]!.id);
  tx.put("plans", plan.id, { ...plan, next, status: done ? "done" : plan.status });
  if (done) leaveRun(run, plan.id);
}

/** Ends a plan before its time; approvals that were made for it and not used end with it. The caller stores the run. */
export function endPlan(
  tx: Tx,
  run: RunDoc,
  plan: PlanDoc,
  ended: { status: "ended" | "expired"; note: string; now: number },
): LedgerRecord[] {
  const { status, note, now } = ended;
  tx.put("plans", plan.id, { ...plan, status, note });
  leaveRun(run, plan.id);
  const records: LedgerRecord[] = [];
  for (const { id } of plan.internal.requests) {
    tx.delete("approval_values", id);
    const made = tx.get("approvals", id);
    if (made?.status !== "approved") continue;
    const moved = moveApproval(tx, run, { ...made, note: `plan ${plan.id} ended` }, "expired");
    const detail = `request ${id}: plan ${plan.id} ended`;
    records.push(
      appendApprovalRecord(tx, run, moved, { event: "approval_expired", actor: ENGINE, ts_ms: now, detail }),
    );
  }
  return records;
}

export function leaveRun(run: RunDoc, id: string): void {
  const left = (run.plans ?? []).filter((one) => one !== id);
  run.plans = left.length === 0 ? undefined : left;
}
