/**
 * Which approvals of a request count, judged whenever it matters: at each vote and again at use. At a vote the
 * earlier ones are asked again whether their givers still have the key and the role. No person counts twice,
 * neither as the one who votes nor as the one whose authority is used, and under four eyes the one who
 * asked does not count at all. People are told apart by the name that the ledger shows: sharing a name, as a
 * token may with a key, never makes a second person.
 */
import {
  type ApprovalDoc,
  type Delegation,
  isGivenAhead,
  type Vote,
  type Voter,
} from "../../model/approval.ts";
import { type MergedApproval, needsMet } from "../../model/policy/approvals.ts";
import { hasRole, keptOf, type Principal, seesTenant, type Today } from "../../model/roles.ts";
import type { Tx } from "../../port/store.ts";
import type { Core } from "../core.ts";
import type { Authority } from "./authority.ts";

type Behind = Pick<Vote, "by" | "for">;
type Counted = Pick<Voter, "groups">;

const peopleBehind = ({ by, for: lender }: Behind): string[] => (lender === null ? [by] : [by, lender]);

/** What is kept of an approval's giver, so that it can be asked again whether it counts. */
export function voterOf(principal: Principal, authority: Authority, today: Today | undefined): Voter {
  const groups = [...authority.groups];
  const by = keptOf(principal);
  // Whoever sits at the data, and has no key, has none that could be taken away.
  if ((today?.(by) ?? null) === null) return { groups };
  const { lender, delegation } = authority;
  return { groups, by, lender, ...(delegation === undefined ? {} : { delegation }) };
}

/** The voter as far as it counts now; null once its key, its tenant, or the role that it was given by, is gone. */
function standing(voter: Voter, tenant: string | null, today: Today | undefined): Counted | null {
  const { by, lender, groups } = voter;
  if (by === undefined || today === undefined) return voter;
  const holder = today(lender ?? by);
  if (today(by) === null || holder === null || !hasRole(holder, "approver")) return null;
  if (!seesTenant(holder, tenant)) return null;
  return { groups: groups.filter((group) => holder.groups.includes(group)) };
}

/**
 * The request with only the approvals that count at this moment, where it was approved before the call was asked for.
 * The decision on a call that was asked for stays, whatever happens to the key of the person who made it.
 */
export function asGivenNow(core: Core, tx: Tx, request: ApprovalDoc): ApprovalDoc {
  if (!isGivenAhead(request) || request.status !== "approved") return request;
  const { internal, tenant, votes } = request;
  const lent = internal.voters.flatMap(({ delegation }) => delegation ?? []);
  if (lent.length > 0) tx.expect(lent.map((id) => ["delegations", id]));
  const counted = internal.voters.map((voter) => {
    const { delegation } = voter;
    const isLent = delegation === undefined || isInForce(tx.get("delegations", delegation), core.env.now());
    return isLent ? standing(voter, tenant, core.today) : null;
  });
  const approvals = votes.filter(({ decision }) => decision === "approve");
  return {
    ...request,
    votes: approvals.filter((_, index) => counted[index] != null),
    internal: {
      ...internal,
      voters: counted.flatMap((one) => (one === null ? [] : [{ groups: [...one.groups] }])),
    },
  };
}

function isInForce(delegation: Delegation | undefined, now: number): boolean {
  return delegation !== undefined && delegation.revoked_ms === null && now < delegation.expires_ms;
}

/** The approvals so far that stand, and the people behind each. */
function approvalsOf({ votes, internal, tenant }: ApprovalDoc, today: Today | undefined) {
  return votes
    .filter(({ decision }) => decision === "approve")
    .flatMap((vote, index) => {
      const voter = internal.voters[index];
      const stands = voter === undefined ? null : standing(voter, tenant, today);
      return stands === null ? [] : [{ people: peopleBehind(vote), voter: stands }];
    });
}

/** A person behind this vote who stands behind an earlier approval already; undefined where all are new. */
export function countedBefore(
  approval: ApprovalDoc,
  vote: Behind,
  today: Today | undefined,
): string | undefined {
  const counted = new Set(approvalsOf(approval, today).flatMap(({ people }) => people));
  return peopleBehind(vote).find((person) => counted.has(person));
}

/** The groups of each approval that counts; with `today`, only of those whose givers still could give them. */
export function countingVoters(
  approval: ApprovalDoc,
  four_eyes: boolean,
  today?: Today | undefined,
): readonly Counted[] {
  const counted = new Set(four_eyes ? [approval.actor] : []);
  return approvalsOf(approval, today).flatMap(({ people, voter }) => {
    if (people.some((person) => counted.has(person))) return [];
    for (const person of people) counted.add(person);
    return [voter];
  });
}

/** Whether an approved request covers what is asked for now; terms that became stricter meanwhile count. */
export function covers(request: ApprovalDoc, spec: MergedApproval, four_eyes: boolean): boolean {
  if (request.break_glass) return !four_eyes || request.decided_by !== request.actor;
  // After escalation those it went to may stand in for the groups it was first meant for.
  const stand_in = request.escalated_ms === null ? [] : spec.escalate_to;
  const needs = spec.needs.map((need) =>
    need.groups.length === 0 ? need : { ...need, groups: [...need.groups, ...stand_in] },
  );
  return needsMet(needs, countingVoters(request, four_eyes));
}
