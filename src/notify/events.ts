/**
 * What the service tells people, and exactly which facts each notification may hold. Argument values
 * have no field here, so no channel can send one.
 */
import { type ApprovalView, requestGroups } from "../model/approval.ts";
import type { PlanCall, PlanDoc, PlanView } from "../model/plan.ts";

const NOTIFICATION_EVENTS = {
  approval_requested: "a call waits for a person's decision",
  plan_proposed: "calls that an agent proposes wait for a person's decision",
  approval_digest: "an agent asked so often that its requests are told together",
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

const SEVERITIES = ["critical", "error", "warning", "info"] as const;
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
  /** True when the request was passed on because it was not decided in time. */
  readonly escalated: boolean;
}

export interface PlanProposed extends Pick<PlanView, "id" | "run_id" | "actor" | "tenant" | "reason"> {
  readonly event: "plan_proposed";
  readonly calls: readonly Pick<PlanCall, "tool" | "arg_names" | "decision">[];
  /** Whoever decides some of it; the highest quorum of those calls that need an approval. */
  readonly approvers: { readonly groups: readonly string[]; readonly quorum: number };
  readonly fully_reversible: boolean;
  readonly requested_ms: number;
  readonly expires_ms: number;
}

export interface ApprovalDigest {
  readonly event: "approval_digest";
  readonly actor: string;
  /** How many wait, and how many of them were passed on because they were not decided in time. */
  readonly waiting: number;
  readonly escalated: number;
  /** What has the same tool and rule; `id` is one of them. */
  readonly groups: readonly {
    readonly tool: string;
    readonly rule: string | null;
    readonly waiting: number;
    readonly id: string;
  }[];
  /** When the first of them expires. */
  readonly expires_ms: number;
  /** How long there will be no other for this actor. */
  readonly window_ms: number;
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
  | PlanProposed
  | ApprovalDigest
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

/** The tools and the names of their arguments, as a request has them. */
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

/** The largest ones; a message is for reading, and the console lists the rest. */
const DIGEST_GROUPS = 10;
