/**
 * Which approvals of a request count, judged whenever it matters: at each vote and again at use. No person counts
 * twice, neither as the one who votes nor as the one whose authority is used, and under four eyes the one who
 * asked does not count at all. People are told apart by the name that the ledger shows: sharing a name, as a
 * token may with a key, never makes a second person.
 */
import type { ApprovalDoc, Vote } from "../../model/approval.ts";
import { type MergedApproval, needsMet } from "../../model/policy/approvals.ts";

type Behind = Pick<Vote, "by" | "for">;

const peopleBehind = ({ by, for: lender }: Behind): string[] => (lender === null ? [by] : [by, lender]);

/** A person behind this vote who stands behind an earlier approval already; undefined where all are new. */
export function countedBefore({ votes }: ApprovalDoc, vote: Behind): string | undefined {
  const counted = new Set(votes.filter(({ decision }) => decision === "approve").flatMap(peopleBehind));
  return peopleBehind(vote).find((person) => counted.has(person));
}

/** The groups of each approval that counts. */
export function countingVoters(approval: ApprovalDoc, four_eyes: boolean): readonly { groups: string[] }[] {
  const approvals = approval.votes.filter(({ decision }) => decision === "approve");
  const counted = new Set(four_eyes ? [approval.actor] : []);
  return approval.internal.voters.filter((_voter, index) => {
    const people = approvals[index] === undefined ? [] : peopleBehind(approvals[index]);
    if (people.length === 0 || people.some((person) => counted.has(person))) return false;
    for (const person of people) counted.add(person);
    return true;
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
