/**
 * Notification events and their allowed facts. No event has a field for argument values, so no channel can send one.
 */
import { type ApprovalView, requestGroups } from "../govern/approvals/approval.ts";
import type { PlanCall, PlanDoc, PlanView } from "../govern/plans/plan.ts";

/** Each event, and when it is sent. */
export const NOTIFICATION_EVENTS = {
  approval_requested: "a call awaits approval",
  plan_proposed: "a plan of calls awaits approval",
  approval_digest: "one agent has many pending requests",
  alert: "a condition needs attention",
  alert_resolved: "a condition has cleared",
  retention_purged: "working data of runs was deleted",
  test: "an admin tests a channel",
} as const;

export type NotificationName = keyof typeof NOTIFICATION_EVENTS;
export const NOTIFICATION_NAMES = Object.keys(NOTIFICATION_EVENTS) as [
  NotificationName,
  ...NotificationName[],
];

const SEVERITIES = ["critical", "error", "warning", "info"] as const;
export type AlertSeverity = (typeof SEVERITIES)[number];

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
  /** True if the request was escalated because it was not decided in time. */
  readonly escalated: boolean;
}

export interface PlanProposed extends Pick<PlanView, "id" | "run_id" | "actor" | "tenant" | "reason"> {
  readonly event: "plan_proposed";
  readonly calls: readonly Pick<PlanCall, "tool" | "arg_names" | "decision">[];
  /** Groups that decide any of the calls, and the highest quorum among the calls that need approval. */
  readonly approvers: { readonly groups: readonly string[]; readonly quorum: number };
  readonly fully_reversible: boolean;
  readonly requested_ms: number;
  readonly expires_ms: number;
}

export interface ApprovalDigest {
  readonly event: "approval_digest";
  readonly actor: string;
  /** Number of waiting requests, and the number of escalated ones among them. */
  readonly waiting: number;
  readonly escalated: number;
  /** Requests with the same tool and rule; `id` is one of them. */
  readonly groups: readonly {
    readonly tool: string;
    readonly rule: string | null;
    readonly waiting: number;
    readonly id: string;
  }[];
  /** Expiry of the first of them. */
  readonly expires_ms: number;
  /** Time until this actor can have another digest. */
  readonly window_ms: number;
}

interface AlertFacts {
  /** The same for an alert, its reminders and its resolution, so that an incident can be closed. */
  readonly id: string;
  readonly kind: string;
  readonly severity: AlertSeverity;
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
  /** Paths of their signed bundles on the server's disk. */
  readonly archived: readonly string[];
  readonly by: string;
}

export interface TestMessage {
  readonly event: "test";
  readonly by: string;
}

export type NotificationEvent =
  | ApprovalRequested
  | PlanProposed
  | ApprovalDigest
  | AlertRaised
  | AlertResolved
  | RetentionPurged
  | TestMessage;

/** Selects the fields explicitly, so that a field added to requests later is not sent by accident. */
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

/** Includes the tools and argument names only, as for a request. */
export function planProposed({ calls, internal, ...plan }: PlanDoc): PlanProposed {
  const { id, run_id, actor, tenant, reason, fully_reversible, requested_ms, expires_ms } = plan;
  const asking = internal.requests.filter((_, i) => calls[i]?.approval_id !== null);
  return {
    event: "plan_proposed",
    id,
    run_id,
    actor,
    tenant,
    reason,
    calls: calls.map(({ tool, arg_names, decision }) => ({ tool, arg_names: [...arg_names], decision })),
    approvers: {
      groups: [...new Set(asking.flatMap(({ approvers }) => approvers.groups))],
      quorum: Math.max(1, ...asking.map(({ approvers }) => approvers.quorum)),
    },
    fully_reversible,
    requested_ms,
    expires_ms,
  };
}

export function approvalDigest(
  actor: string,
  requests: readonly ApprovalView[],
  window_ms: number,
): ApprovalDigest {
  const groups = requestGroups(requests).map(({ tool, rule, requests: alike }) => ({
    tool,
    rule,
    waiting: alike.length,
    id: alike[0]!.id,
  }));
  return {
    event: "approval_digest",
    actor,
    waiting: requests.length,
    escalated: requests.filter(({ escalated_ms }) => escalated_ms !== null).length,
    groups: groups.sort((a, b) => b.waiting - a.waiting).slice(0, DIGEST_GROUPS),
    expires_ms: Math.min(...requests.map(({ expires_ms }) => expires_ms)),
    window_ms,
  };
}

/** Limit on listed groups, largest first. The console lists the rest. */
const DIGEST_GROUPS = 10;
