/** Compares two sets of approval terms: stricter, looser or merely different. */
import { formatDuration } from "../../../kernel/duration.ts";
import { formatCountOf } from "../../../kernel/text/phrases.ts";
import type { ApprovalNeed, MergedApproval } from "../checks/approvals.ts";
import type { CompiledPolicy } from "../compile.ts";

export function compareTerms(
  a: CompiledPolicy,
  was: MergedApproval,
  b: CompiledPolicy,
  is: MergedApproval,
): "looser" | "stricter" | "other" | null {
  const before = { ...was, four_eyes: a.approvals.four_eyes };
  const after = { ...is, four_eyes: b.approvals.four_eyes };
  // Replacing some approvers by others also counts as looser: users who could not approve now can.
  if (takesMore(before, after)) return "looser";
  if (takesMore(after, before)) return "stricter";
  return sameCourse(was, is) ? null : "other";
}

interface Terms extends MergedApproval {
  four_eyes: boolean;
}

/** True if the second terms accept approvals that the first do not: of other users, of fewer, or at another time. */
function takesMore(was: Terms, is: Terms): boolean {
  return (
    !asksFor(is.needs, was.needs) ||
    (was.four_eyes && !is.four_eyes) ||
    (was.signed === true && is.signed !== true) ||
    is.ttl_ms > was.ttl_ms ||
    escalatesSooner(was, is)
  );
}

/** Text such as `2 approvers of finance, not the requester, within 1h`. */
export function describeTerms({ approvals }: CompiledPolicy, terms: MergedApproval): string {
  const { needs, ttl_ms, escalate_after_ms, escalate_to } = terms;
  const who = needs.map(
    ({ groups, quorum }) =>
      formatCountOf(quorum, "approver") + (groups.length === 0 ? "" : ` of ${groups.join(" or ")}`),
  );
  return [
    who.join(" and "),
    ...(approvals.four_eyes ? ["not the requester"] : []),
    ...(terms.signed ? ["signed"] : []),
    `within ${formatDuration(ttl_ms)}`,
    ...(escalate_after_ms === null
      ? []
      : [`from ${formatDuration(escalate_after_ms)} on ${escalate_to.join(" or ")}`]),
  ].join(", ");
}

/** True if approvals that meet all of `more` also meet all of `less`. */
function asksFor(more: readonly ApprovalNeed[], less: readonly ApprovalNeed[]): boolean {
  return less.every((one) => more.some((other) => covers(other, one)));
}

function covers(a: ApprovalNeed, b: ApprovalNeed): boolean {
  if (a.quorum < b.quorum) return false;
  return (
    b.groups.length === 0 || (a.groups.length > 0 && a.groups.every((group) => b.groups.includes(group)))
  );
}

/** True if users can decide who could not before, or earlier than before. */
function escalatesSooner(was: MergedApproval, is: MergedApproval): boolean {
  if (is.escalate_after_ms === null || is.escalate_to.length === 0) return false;
  // Escalation changes nothing if any approver can decide.
  if (is.needs.every(({ groups }) => groups.length === 0)) return false;
  if (was.escalate_after_ms === null || is.escalate_after_ms < was.escalate_after_ms) return true;
  return is.escalate_to.some((group) => !was.escalate_to.includes(group));
}

/** True if both notify the same users at the same time. */
function sameCourse(a: MergedApproval, b: MergedApproval): boolean {
  return (
    a.escalate_after_ms === b.escalate_after_ms &&
    [...a.escalate_to].sort().join("\n") === [...b.escalate_to].sort().join("\n")
  );
}
