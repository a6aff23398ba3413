/** Approval requests, delegations and halts. */
import * as z from "zod";
import type { ManifestSet } from "../../rules/manifest/types.ts";
import { nullableSchema } from "../../rules/nullable-schema.ts";
import type { ApprovalNeed } from "../../rules/policy/checks/approvals.ts";
import type { ApprovalCauses, RequestedUndo } from "../cards/types.ts";
import { isProbe, keyId, type PrincipalName, principalName, type StoredPrincipal } from "../roles.ts";
import type { StoredSignature } from "../signing/payload.ts";

export const APPROVAL_STATUSES = [
  "pending",
  "escalated",
  "approved",
  "denied",
  "expired",
  "consumed",
] as const;
export type ApprovalStatus = (typeof APPROVAL_STATUSES)[number];
/** Statuses in which an approver can still decide. */
export const OPEN_APPROVAL_STATUSES: ReadonlySet<ApprovalStatus> = new Set(["pending", "escalated"]);
/** Statuses in which a request can still lead to its call. Only these expire. */
export const LIVE_APPROVAL_STATUSES: ReadonlySet<ApprovalStatus> = new Set([
  ...OPEN_APPROVAL_STATUSES,
  "approved",
]);

const ofProbe = (status: ApprovalStatus): string => `probe:${status}`;

/**
 * Index tag of a request. Requests of the probe have their own tags, so that counts of open requests leave them out.
 */
export const approvalTag = ({ status, internal }: Pick<ApprovalDoc, "status" | "internal">): string =>
  isProbe(internal.principal) ? ofProbe(status) : status;

/** Tags of all requests in the given states, those of the probe included. */
export const approvalTags = (statuses: Iterable<ApprovalStatus>): string[] =>
  [...statuses].flatMap((status) => [status, ofProbe(status)]);

/** Note on a request that its requester withdrew. */
export const WITHDRAWN_NOTE = "withdrawn";

/** How approvers decided a request or a plan. */
export const decidedFields = {
  votes: z.array(
    z.strictObject({
      by: z.string(),
      decision: z.enum(["approve", "deny"]),
      note: nullableSchema(z.string()),
      at_ms: z.int(),
      /** Principal whose delegated authority the approver used, or null. */
      for: nullableSchema(z.string()),
    }),
  ),
  decided_by: nullableSchema(z.string()),
  decided_ms: nullableSchema(z.int()),
  note: nullableSchema(z.string()),
};

/** Approval request as the API shows it. */
export const approvalViewShape = z.strictObject({
  id: z.string(),
  run_id: z.string(),
  tool: z.string(),
  actor: z.string(),
  /** Those who act for the actor, outermost first; absent if it acts itself. */
  acting: z.array(z.string()).optional(),
  tenant: nullableSchema(z.string()),
  args_hash: z.string(),
  arg_names: z.array(z.string()),
  reason: z.string(),
  rule: nullableSchema(z.string()),
  status: z.enum(APPROVAL_STATUSES),
  requested_ms: z.int(),
  expires_ms: z.int(),
  approvers: z.strictObject({ groups: z.array(z.string()), quorum: z.int() }),
  ...decidedFields,
  kind: z.enum(["call", "compensation"]),
  step: nullableSchema(z.int()),
  escalated_ms: nullableSchema(z.int()),
  break_glass: z.boolean(),
});

export type ApprovalView = z.output<typeof approvalViewShape>;
export type ApprovalVote = ApprovalView["votes"][number];

/** One approval, and the groups it counts for. `by` is absent for local command line users without a key. */
export interface ApprovalVoter {
  groups: string[];
  by?: StoredPrincipal | undefined;
  /** Delegator and delegation, if the voter used delegated authority. Votes recorded by earlier versions lack both. */
  lender?: StoredPrincipal | undefined;
  delegation?: string | undefined;
  /** Hash of the policy under which the voter signed; absent for an unsigned vote. */
  signed?: string | undefined;
}

export interface ApprovalDoc extends ApprovalView {
  /** Internal fields, absent from listings. */
  internal: {
    principal: string;
    escalate_after_ms: number | null;
    escalate_to: string[];
    risk_score: number;
    /** Approvals that the request needs, and the votes so far. */
    needs: ApprovalNeed[];
    voters: ApprovalVoter[];
    /** Plan whose approval created this request. */
    plan?: string | undefined;
    /** Causes of the request, for the card. Requests of earlier versions lack it. */
    because?: ApprovalCauses | undefined;
    undo?: RequestedUndo | undefined;
    /** Hash of the state that the card showed, keyed with the run's salt. Null if the card reported a failed read. */
    before_hash?: string | null | undefined;
    /** Counter-proposal that an approver made when denying this call. */
    offer?: string | undefined;
    /** Slot of the denied call that this counter-proposal replaces. */
    offer_for?: string | undefined;
    /** An approver approved the call before the agent requested it. */
    given_ahead?: true | undefined;
    /** Only signed decisions count. */
    signed?: true | undefined;
    /** Verified signatures of its decisions. */
    signatures?: StoredSignature[] | undefined;
    /** A simulation assumes this approval; never stored. */
    assumed?: true | undefined;
    /** Notifications group this request with others, because its actor had too many open. */
    in_digest?: true | undefined;
  };
}

/**
 * True if an approver approved the call before the agent requested it: in a plan, as a counter-proposal or in advance.
 */
export function isPreApproved({ internal }: Pick<ApprovalDoc, "internal">): boolean {
  const { plan, offer_for, given_ahead } = internal;
  return plan !== undefined || offer_for !== undefined || given_ahead === true;
}

/** True if the call cannot be undone. Such calls are notified and decided one at a time. */
export function isIrreversible(
  { kind, tool }: Pick<ApprovalDoc, "kind" | "tool">,
  manifests: Pick<ManifestSet, "active">,
): boolean {
  return kind === "call" && manifests.active(tool)?.effect === "irreversible";
}

/** True if an approval takes a second gesture, so that each call is decided separately. */
export function needsConfirmation(
  approval: Pick<ApprovalDoc, "kind" | "tool">,
  manifests: Pick<ManifestSet, "active">,
): boolean {
  const confirm = approval.kind === "call" && manifests.active(approval.tool)?.card?.confirm === true;
  return confirm || isIrreversible(approval, manifests);
}

/** Requests similar enough to decide together: same actor, tool and rule. */
interface RequestGroup<A> {
  actor: string;
  tool: string;
  rule: string | null;
  requests: A[];
}

type Grouped = Pick<ApprovalDoc, "actor" | "tenant" | "tool" | "rule" | "kind">;

/**
 * Includes the tenant, because two tenants can have actors of the same name, and the kind, because an undo needs
 * another decision than a call.
 */
const groupKey = ({ actor, tenant, tool, rule, kind }: Grouped): string =>
  JSON.stringify([actor, tenant, tool, rule, kind]);

export const sameGroup = (a: Grouped, b: Grouped): boolean => groupKey(a) === groupKey(b);

/** Groups requests, ordered by the first request of each group. */
export function requestGroups<A extends Grouped>(requests: readonly A[]): RequestGroup<A>[] {
  const groups = new Map<string, RequestGroup<A>>();
  for (const one of requests) {
    const { actor, tool, rule } = one;
    const group = groups.get(groupKey(one));
    if (group === undefined) groups.set(groupKey(one), { actor, tool, rule, requests: [one] });
    else group.requests.push(one);
  }
  return [...groups.values()];
}

export function approvalView(doc: ApprovalDoc): ApprovalView {
  const { internal: _internal, ...view } = doc;
  return view;
}

export interface StoredDelegation {
  id: string;
  from: string;
  to: string;
  tools: string;
  reason: string;
  created_ms: number;
  expires_ms: number;
  revoked_ms: number | null;
  /** Id of the recipient. Records of earlier versions have only `to`, which is then the name of a key. */
  to_id?: string | undefined;
  /** Signature of the delegator, if one was required or given. */
  signature?: StoredSignature | undefined;
  /** Snapshot of the delegator's authority at creation; absent from listings. */
  authority: StoredPrincipal;
}

export function recipientOf({ to, to_id }: StoredDelegation): string {
  return to_id ?? keyId(to);
}

export interface DelegationView extends Omit<StoredDelegation, "authority" | "to_id" | "signature"> {
  from_principal: PrincipalName;
  to_principal: PrincipalName;
  /** Usable now: not expired, not revoked, and its delegator could still decide. */
  in_force: boolean;
}

export function delegationView(doc: StoredDelegation, in_force: boolean): DelegationView {
  const { authority, to_id: _to_id, signature: _signature, ...view } = doc;
  const from_principal = principalName(authority.principal);
  return { ...view, from_principal, to_principal: principalName(recipientOf(doc)), in_force };
}

export const HALT_FIELDS = ["tool", "actor", "tenant", "environment"] as const;
export type HaltScope = { [field in (typeof HALT_FIELDS)[number]]?: string | null | undefined };

export const haltView = z.strictObject({
  id: z.string(),
  reason: z.string(),
  scope: z.strictObject({
    tool: nullableSchema(z.string()),
    actor: nullableSchema(z.string()),
    tenant: nullableSchema(z.string()),
    environment: nullableSchema(z.string()),
  }),
  by: z.string(),
  created_ms: z.int(),
  /** The actor is a plain name although it has characters of a glob; absent otherwise. */
  literal: z.literal(true).optional(),
});

export type StoredHalt = z.output<typeof haltView>;

/** Matches the reason that names a pending request. */
const PENDING = /^approval required: request (apr_[0-9a-f-]{36}) is pending/;

export function pendingApprovalId(reasons: readonly string[]): string | null {
  for (const reason of reasons) {
    const match = PENDING.exec(reason);
    if (match !== null) return match[1]!;
  }
  return null;
}

/** Replaces the reason that names a pending request by the one that says how the request ended. */
export function replacePendingReason(reasons: readonly string[], ending: string): string[] {
  return reasons.map((reason) => (PENDING.test(reason) ? ending : reason));
}
