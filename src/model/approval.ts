/** Approval requests, delegations and halts. */
import type { AskedUndo, Because } from "./card/types.ts";
import type { ManifestSet } from "./manifest/types.ts";
import type { ApprovalNeed } from "./policy/approvals.ts";
import { isProbe, type KeptPrincipal, keyId, type PrincipalName, principalName } from "./roles.ts";

export const APPROVAL_STATUSES = [
  "pending",
  "escalated",
  "approved",
  "denied",
  "expired",
  "consumed",
] as const;
export type ApprovalStatus = (typeof APPROVAL_STATUSES)[number];
/** Requests that a person can still decide. */
export const OPEN_APPROVAL: ReadonlySet<ApprovalStatus> = new Set(["pending", "escalated"]);

const ofProbe = (status: ApprovalStatus): string => `probe:${status}`;

/** What a request is found by. The probe's have names of their own, so that a count of what people are asked has none. */
export const approvalTag = ({ status, internal }: Pick<ApprovalDoc, "status" | "internal">): string =>
  isProbe(internal.principal) ? ofProbe(status) : status;

/** By which every request in one of the states is found, whoever asked. */
export const everyTag = (statuses: Iterable<ApprovalStatus>): string[] =>
  [...statuses].flatMap((status) => [status, ofProbe(status)]);

/** The note of a request that whoever asked took back. */
export const WITHDRAWN = "withdrawn";

export interface Vote {
  by: string;
  decision: "approve" | "deny";
  note: string | null;
  at_ms: number;
  /** The principal whose lent authority was used, or null. */
  for: string | null;
}

/** A request for approval, as it is shown. */
export interface ApprovalView {
  id: string;
  run_id: string;
  tool: string;
  actor: string;
  tenant: string | null;
  args_hash: string;
  arg_names: string[];
  reason: string;
  rule: string | null;
  status: ApprovalStatus;
  requested_ms: number;
  expires_ms: number;
  approvers: { groups: string[]; quorum: number };
  votes: Vote[];
  decided_by: string | null;
  decided_ms: number | null;
  note: string | null;
  kind: "call" | "compensation";
  step: number | null;
  escalated_ms: number | null;
  break_glass: boolean;
}

/** Who gave one of the approvals, and with what; who it was is unknown of whoever sat at the data. */
export interface Voter {
  groups: string[];
  by?: KeptPrincipal | undefined;
  /** Whose lent authority it was, and by which delegation; votes of earlier versions do not name it. */
  lender?: KeptPrincipal | undefined;
  delegation?: string | undefined;
}

export interface ApprovalDoc extends ApprovalView {
  /** Working facts that listings leave out. */
  internal: {
    principal: string;
    escalate_after_ms: number | null;
    escalate_to: string[];
    risk_score: number;
    /** What the approvals must add up to, and the groups of those who approved. */
    needs: ApprovalNeed[];
    voters: Voter[];
    /** The plan that it belongs to, where it was made by the decision on one. */
    plan?: string | undefined;
    /** What asked for it, for the card; requests of earlier versions do not have it. */
    because?: Because | undefined;
    undo?: AskedUndo | undefined;
    /** What its card showed to be there, keyed with the run's salt; null where it says that it could not be read. */
    before_hash?: string | null | undefined;
    /** The request that was approved ahead when this call was denied. */
    offer?: string | undefined;
    /** The slot of the denied call that this one is offered in place of. */
    offer_for?: string | undefined;
    /** A person approved the call before it was asked for. */
    given_ahead?: true | undefined;
    /** People are told of it together with others: its actor had opened too many. */
    in_digest?: true | undefined;
  };
}

/** Approved before the call was asked for: by a plan, as an offer, or ahead of any request. */
export function isGivenAhead({ internal }: Pick<ApprovalDoc, "internal">): boolean {
  const { plan, offer_for, given_ahead } = internal;
  return plan !== undefined || offer_for !== undefined || given_ahead === true;
}

/** Nothing takes such a call back, so it is told and decided by itself. */
export function isIrreversible(
  { kind, tool }: Pick<ApprovalDoc, "kind" | "tool">,
  manifests: Pick<ManifestSet, "active">,
): boolean {
  return kind === "call" && manifests.active(tool)?.effect === "irreversible";
}

/** Requests alike enough to be decided together: of one actor, for one tool, asked for by one rule. */
interface RequestGroup<A> {
  actor: string;
  tool: string;
  rule: string | null;
  requests: A[];
}

type Grouped = Pick<ApprovalDoc, "actor" | "tenant" | "tool" | "rule" | "kind">;

/** Two tenants may each have an actor of the name, and an undo is another question than a call. */
const groupKey = ({ actor, tenant, tool, rule, kind }: Grouped): string =>
  JSON.stringify([actor, tenant, tool, rule, kind]);

export const sameGroup = (a: Grouped, b: Grouped): boolean => groupKey(a) === groupKey(b);

/** In the order in which the first of each comes. */
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

export interface Delegation {
  id: string;
  from: string;
  to: string;
  tools: string;
  reason: string;
  created_ms: number;
  expires_ms: number;
  revoked_ms: number | null;
  /** The principal it was lent to. Stores of before have the bare name alone, and then it is the key of that name. */
  to_id?: string | undefined;
  /** What was lent, as it was when lent; listings leave it out. */
  authority: KeptPrincipal;
}

export function recipientOf({ to, to_id }: Delegation): string {
  return to_id ?? keyId(to);
}

export interface DelegationView extends Omit<Delegation, "authority" | "to_id"> {
  from_principal: PrincipalName;
  to_principal: PrincipalName;
  /** Whether it could be used now: neither over nor taken back, and its lender could still decide. */
  in_force: boolean;
}

export function delegationView(doc: Delegation, in_force: boolean): DelegationView {
  const { authority, to_id: _to_id, ...view } = doc;
  const from_principal = principalName(authority.principal);
  return { ...view, from_principal, to_principal: principalName(recipientOf(doc)), in_force };
}

export const HALT_FIELDS = ["tool", "actor", "tenant", "environment"] as const;
export type HaltScope = { [field in (typeof HALT_FIELDS)[number]]?: string | null | undefined };

export interface Halt {
  id: string;
  reason: string;
  scope: { tool: string | null; actor: string | null; tenant: string | null; environment: string | null };
  by: string;
  created_ms: number;
}

/** Of a call's reasons, the one that tells of a request that waits. */
const PENDING = /^approval required: request (apr_[0-9a-f-]{36}) is pending/;

export function approvalIn(reasons: readonly string[]): string | null {
  for (const reason of reasons) {
    const match = PENDING.exec(reason);
    if (match !== null) return match[1]!;
  }
  return null;
}

/** The reasons once no person is waited for any more: how the request ended in place of that it is pending. */
export function withEnding(reasons: readonly string[], ending: string): string[] {
  return reasons.map((reason) => (PENDING.test(reason) ? ending : reason));
}
