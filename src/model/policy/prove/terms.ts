/** Whether one set of approval terms asks for more than another, or for something else. */
import { showDuration } from "../../../kernel/duration.ts";
import { plural } from "../../../kernel/plural.ts";
import type { ApprovalNeed, MergedApproval } from "../approvals.ts";
import type { Policy } from "../compile.ts";

export function compareTerms(
  a: Policy,
  was: MergedApproval,
  b: Policy,
  is: MergedApproval,
): "looser" | "stricter" | "other" | null {
  const [before, after] = [a.approvals.four_eyes, b.approvals.four_eyes];
  const no_less = asksFor(is.needs, was.needs) && (after || !before);
  const no_more = asksFor(was.needs, is.needs) && (before || !after);
  if (no_less && no_more) return sameCourse(was, is) ? null : escalatesSooner(was, is) ? "looser" : "other";
  if (no_less) return "stricter";
  return no_more ? "looser" : "other";
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
  if (was.escalate_after_ms === null || is.escalate_after_ms < was.escalate_after_ms) return true;
  return is.escalate_to.some((group) => !was.escalate_to.includes(group));
}

/** How long a request stays open and who hears of it. */
function sameCourse(a: MergedApproval, b: MergedApproval): boolean {
  return (
    a.ttl_ms === b.ttl_ms &&
    a.escalate_after_ms === b.escalate_after_ms &&
    [...a.escalate_to].sort().join("\n") === [...b.escalate_to].sort().join("\n")
  );
}
