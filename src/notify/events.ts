/**
 * What the service tells people, and exactly which facts each notification may hold. Argument values
 * have no field here, so no channel can send one.
 */
import type { ApprovalView } from "../model/approval.ts";

export const NOTIFICATION_EVENTS = {
  approval_requested: "a call waits for a person's decision",
  alert: "a condition needs attention",
  alert_resolved: "a condition has cleared",
  retention_purged: "working data of runs was deleted",
  test: "a test message",
} as const;

export type NotificationName = keyof typeof NOTIFICATION_EVENTS;
export const NOTIFICATION_NAMES = Object.keys(NOTIFICATION_EVENTS) as [
  NotificationName,
  ...NotificationName[],
];

export const SEVERITIES = ["critical", "error", "warning", "info"] as const;
export type Severity = (typeof SEVERITIES)[number];

export interface ApprovalRequested
  extends Pick<
    ApprovalView,
    | "id"
    | "run_id"
    | "tool"
    | "actor"
    | "tenant"
    | "arg_names"
    | "reason"
    | "rule"
    | "kind"
    | "step"
    | "approvers"
    | "requested_ms"
    | "expires_ms"
  > {
  readonly event: "approval_requested";
  /** True when the request was passed on because nobody had decided it. */
  readonly escalated: boolean;
}

interface AlertFacts {
  /** The same for an alert, its reminders and its resolution, so that an incident can be closed. */
  readonly id: string;
  readonly kind: string;
  readonly severity: Severity;
  readonly title: string;
  readonly message: string;
  readonly since_ms: number;
  readonly run_id: string | null;
  readonly step: number | null;
  readonly tool: string | null;
}

export interface AlertRaised extends AlertFacts {
  readonly event: "alert";
  readonly reminder: boolean;
}

export interface AlertResolved extends AlertFacts {
  readonly event: "alert_resolved";
  readonly resolved_ms: number;
}

export interface RetentionPurged {
  readonly event: "retention_purged";
  readonly runs: readonly string[];
  /** Where signed bundles of them were put, on the server's disk. */
  readonly archived: readonly string[];
  readonly by: string;
}

export interface TestMessage {
  readonly event: "test";
  readonly by: string;
}

export type NotificationEvent =
  | ApprovalRequested
  | AlertRaised
  | AlertResolved
  | RetentionPurged
  | TestMessage;

/** Picks field by field what may leave; a new field of a request does not slip out with the rest. */
export function approvalRequested(request: ApprovalView): ApprovalRequested {
  const { id, run_id, tool, actor, tenant, arg_names, reason, rule, kind, step } = request;
  const { approvers, requested_ms, expires_ms } = request;
  return {
    event: "approval_requested",
    id,
    run_id,
    tool,
    actor,
    tenant,
    arg_names: [...arg_names],
    reason,
    rule,
    kind,
    step,
    approvers: { groups: [...approvers.groups], quorum: approvers.quorum },
    requested_ms,
    expires_ms,
    escalated: request.escalated_ms !== null,
  };
}
