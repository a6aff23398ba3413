/**
 * Counts the valid approvals of a request, at each vote and again at use. Each vote checks that earlier approvers still
 * have their key and role. A person counts once, as voter or as delegator. Under four eyes the requester does not
 * count. Persons are distinguished by the name in the ledger, so a token and a key with the same name are one person.
 */

import { type MergedApproval, needsMet } from "../../rules/policy/checks/approvals.ts";
import type { CompiledPolicy } from "../../rules/policy/compile.ts";
import type { EngineCore } from "../core.ts";
import { isInForce } from "../expiry.ts";
import type { StoreTx } from "../port/store.ts";
import {
  type CallerPrincipal,
  hasRole,
  type ResolvePrincipal,
  requestersOf,
  seesTenant,
  toStoredPrincipal,
} from "../roles.ts";
import {
  type ApprovalDoc,
  type ApprovalVote,
  type ApprovalVoter,
  isPreApproved,
  type StoredDelegation,
} from "./approval.ts";
import type { DecidingAuthority } from "./authority.ts";

type Behind = Pick<ApprovalVote, "by" | "for">;
type Counted = Pick<ApprovalVoter, "groups">;

const peopleBehind = ({ by, for: lender }: Behind): string[] => (lender === null ? [by] : [by, lender]);

/** Stored identity of an approver, for checking later that the vote still counts. */
export function toVoter(
  principal: CallerPrincipal,
  authority: DecidingAuthority,
  today: ResolvePrincipal | undefined,
): ApprovalVoter {
  const groups = [...authority.groups];
  const by = toStoredPrincipal(principal);
  // A local user without a key has no key that could be revoked.
  if ((today?.(by) ?? null) === null) return { groups };
  const { lender, delegation } = authority;
  return { groups, by, lender, ...(delegation === undefined ? {} : { delegation }) };
}

/** The part of a vote that counts now. Null if its key, its tenant access or the approver role is gone. */
function countedNow(
  voter: ApprovalVoter,
  tenant: string | null,
  today: ResolvePrincipal | undefined,
): Counted | null {
  const { by, lender, groups } = voter;
  if (by === undefined || today === undefined) return voter;
  const holder = today(lender ?? by);
  if (today(by) === null || holder === null || !hasRole(holder, "approver")) return null;
  if (!seesTenant(holder, tenant)) return null;
  return { groups: groups.filter((group) => holder.groups.includes(group)) };
}

/**
 * For a request approved before the agent made the call: the request with only the approvals that count now. Other
 * decided requests are returned unchanged, even if an approver's key was revoked since.
 */
export function withCurrentApprovals(core: EngineCore, tx: StoreTx, request: ApprovalDoc): ApprovalDoc {
  if (!isPreApproved(request) || request.status !== "approved") return request;
  const { internal, tenant, votes } = request;
  const lent = internal.voters.flatMap(({ delegation }) => delegation ?? []);
  if (lent.length > 0) tx.expect(lent.map((id) => ["delegations", id]));
  const counted = internal.voters.map((voter): ApprovalVoter | null => {
    const { delegation, signed } = voter;
    const isLent = delegation === undefined || isLentNow(tx.get("delegations", delegation), core.env.now());
    const now = isLent ? countedNow(voter, tenant, core.today) : null;
    return now && { groups: [...now.groups], ...(signed === undefined ? {} : { signed }) };
  });
  const approvals = votes.filter(({ decision }) => decision === "approve");
  return {
    ...request,
    votes: approvals.filter((_, index) => counted[index] != null),
    internal: {
      ...internal,
      voters: counted.flatMap((one) => one ?? []),
    },
  };
}

function isLentNow(delegation: StoredDelegation | undefined, now: number): boolean {
  return delegation !== undefined && isInForce(delegation, now);
}

/** The request with only the approvals that were signed under this policy. */
export function withSignedApprovals(request: ApprovalDoc, policy_hash: string): ApprovalDoc {
  const approvals = request.votes.filter(({ decision }) => decision === "approve");
  const isSigned = (_: unknown, i: number) => request.internal.voters[i]?.signed === policy_hash;
  const voters = request.internal.voters.filter(isSigned);
  return { ...request, votes: approvals.filter(isSigned), internal: { ...request.internal, voters } };
}

/** Approvals so far that count, with the persons behind each. */
function approvalsOf({ votes, internal, tenant }: ApprovalDoc, today: ResolvePrincipal | undefined) {
  return votes
    .filter(({ decision }) => decision === "approve")
    .flatMap((vote, index) => {
      const voter = internal.voters[index];
      const counted = voter === undefined ? null : countedNow(voter, tenant, today);
      return counted === null ? [] : [{ people: peopleBehind(vote), voter: counted }];
    });
}

/** Finds a person of this vote who is already part of a counted approval; undefined if there is none. */
export function findCountedPerson(
  approval: ApprovalDoc,
  vote: Behind,
  today: ResolvePrincipal | undefined,
): string | undefined {
  const counted = new Set(approvalsOf(approval, today).flatMap(({ people }) => people));
  return peopleBehind(vote).find((person) => counted.has(person));
}

/** Groups of each approval that counts. With `today`, only of approvers who could still approve. */
export function countingVoters(
  approval: ApprovalDoc,
  four_eyes: boolean,
  today?: ResolvePrincipal | undefined,
): readonly Counted[] {
  const counted = new Set(four_eyes ? requestersOf(approval) : []);
  return approvalsOf(approval, today).flatMap(({ people, voter }) => {
    if (people.some((person) => counted.has(person))) return [];
    for (const person of people) counted.add(person);
    return [voter];
  });
}

function isOwnDecision(request: ApprovalDoc): boolean {
  return request.decided_by !== null && requestersOf(request).includes(request.decided_by);
}

/** True if an approved request covers the current terms, which can be stricter than when it was decided. */
export function approvalCovers(
  request: ApprovalDoc,
  spec: MergedApproval,
  { approvals, hash }: Pick<CompiledPolicy, "approvals" | "hash">,
): boolean {
  const { four_eyes } = approvals;
  if (request.internal.assumed === true) return true;
  if (request.break_glass)
    return (!four_eyes || !isOwnDecision(request)) && (!spec.signed || isGlassSigned(request, hash));
  // After escalation, the escalation groups can substitute for the original groups.
  const stand_in = request.escalated_ms === null ? [] : spec.escalate_to;
  const needs = spec.needs.map((need) =>
    need.groups.length === 0 ? need : { ...need, groups: [...need.groups, ...stand_in] },
  );
  const counted = spec.signed ? withSignedApprovals(request, hash) : request;
  return needsMet(needs, countingVoters(counted, four_eyes));
}

const isGlassSigned = ({ internal }: ApprovalDoc, hash: string): boolean =>
  (internal.signatures ?? []).some(
    ({ payload }) => payload.kind === "break_glass" && payload.policy_hash === hash,
  );
