/** Whether one set of approval terms asks for more than another, or for something else. */
import { showDuration } from "../../../kernel/duration.ts";
import { plural } from "../../../kernel/words.ts";
import type { ApprovalNeed, MergedApproval } from "../approvals.ts";
import type { Policy } from "../compile.ts";

export function compareTerms(
  a: Policy,
  was: MergedApproval,
  b: Policy,
  is: MergedApproval,
): "looser" | "stricter" | "other" | null {
  const before = { ...was, four_eyes: a.approvals.four_eyes };
  const after = { ...is, four_eyes: b.approvals.four_eyes };
  // Other approvers instead of some are looser, too: those who could not approve the call now can.
  if (takesMore(before, after)) return "looser";
  if (takesMore(after, before)) return "stricter";
  return sameCourse(was, is) ? null : "other";
}

interface Terms extends MergedApproval {
  four_eyes: boolean;
}

/** Whether the second takes approvals that the first does not: of others, of fewer, or at another time. */
function takesMore(was: Terms, is: Terms): boolean {
  return (
    !asksFor(is.needs, was.needs) ||
    (was.four_eyes && !is.four_eyes) ||
    is.ttl_ms > was.ttl_ms ||
    escalatesSooner(was, is)
  );
}

/** `2 approvers of finance, not whoever asks, within 1h`. */
export function toldTerms({ approvals }: Policy, terms: MergedApproval): string {
  const { needs, ttl_ms, escalate_after_ms, escalate_to } = terms;
  const who = needs.map(
    ({ groups, quorum }) =>
      plural(quorum, "approver") + (groups.length === 0 ? "" : ` of ${groups.join(" or ")}`),
  );
  return [
    who.join(" and "),
    ...(approvals.four_eyes ? ["not whoever asks"] : []),
    `within ${showDuration(ttl_ms)}`,
    ...(escalate_after_ms === null
      ? []
      : [`from ${showDuration(escalate_after_ms)} on ${escalate_to.join(" or ")}`]),
  ].join(", ");
}

/** Whether whoever meets all of `more` has met all of `less`. */
function asksFor(more: readonly ApprovalNeed[], less: readonly ApprovalNeed[]): boolean {
  return less.every((one) => more.some((other) => covers(other, one)));
}

function covers(a: ApprovalNeed, b: ApprovalNeed): boolean {
  if (a.quorum < b.quorum) return false;
  return (
    b.groups.length === 0 || (a.groups.length > 0 && a.groups.every((group) => b.groups.includes(group)))
  );
}

/** Whether people may decide that could not, or earlier than they could. */
function escalatesSooner(was: MergedApproval, is: MergedApproval): boolean {
  if (is.escalate_after_ms === null || is.escalate_to.length === 0) return false;
  // Where any approver may decide, it makes no difference whom it goes to.
  if (is.needs.every(({ groups }) => groups.length === 0)) return false;
  if (was.escalate_after_ms === null || is.escalate_after_ms < was.escalate_after_ms) return true;
  return is.escalate_to.some((group) => !was.escalate_to.includes(group));
}

/** Who hears of a request, and when. */
function sameCourse(a: MergedApproval, b: MergedApproval): boolean {
  return (
    a.escalate_after_ms === b.escalate_after_ms &&
    [...a.escalate_to].sort().join("\n") === [...b.escalate_to].sort().join("\n")
  );
}
