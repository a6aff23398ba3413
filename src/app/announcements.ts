/** What people are told of an approval request: names, never values. */
import type { ApprovalDoc } from "../model/approval.ts";
import type { ApprovalRequested } from "../notify/events.ts";

export function approvalRequested(approval: ApprovalDoc, escalated: boolean): ApprovalRequested {
  const { id, run_id, tool, actor, tenant, arg_names, reason, rule, kind, step, approvers, requested_ms, expires_ms } = approval;
  return {
    event: "approval_requested",
    escalated,
    ...{ id, run_id, tool, actor, tenant, arg_names, reason, rule, kind, step, approvers, requested_ms, expires_ms },
  };
}
