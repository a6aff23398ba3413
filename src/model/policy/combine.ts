/**
 * Many findings, one answer. The strictest action wins. An explicit allow lifts what the clock or the
 * risk score asked for and nothing else: not a rule, a freeze, a content check, a flow, a limit or a budget.
 */
import { type MergedApproval, mergeTerms } from "./approvals.ts";
import type { Policy } from "./compile.ts";
import type { Finding, RuleAction, StageName } from "./finding.ts";

export interface Combined {
  action: RuleAction;
  /** Every reason against the call, in pipeline order; empty when it is allowed. */
  reasons: string[];
  /** Ids of the entries that decided: those whose action is the one that won. */
  rules: string[];
  /** What an approval must satisfy; null unless the action is `require_approval`. */
  approval: MergedApproval | null;
  /** What asks for an approval, each in its own words; empty unless the action is `require_approval`. */
  causes: { rule: string | null; reason: string }[];
  warnings: string[];
  /** What the agent can do instead, in the words of the entries that spoke against the call. */
  hints: string[];
}

const LIFTED_BY_ALLOW: ReadonlySet<StageName> = new Set(["risk", "window"]);

/** `findings` in pipeline order: times, content, rules, flows, limits and budgets, risk. */
export function combine(policy: Pick<Policy, "approvals">, findings: readonly Finding[]): Combined {
  // Most calls: nothing was found, and nothing has to be weighed.
  if (findings.length === 0)
    return { action: "allow", reasons: [], rules: [], approval: null, causes: [], warnings: [], hints: [] };
  const standing = effectiveFindings(findings);
  const by = (action: Finding["action"]) => standing.filter((finding) => finding.action === action);
  const action: RuleAction =
    by("deny").length > 0 ? "deny" : by("require_approval").length > 0 ? "require_approval" : "allow";
  const against = standing.filter(
    (finding) => finding.action === "deny" || finding.action === "require_approval",
  );
  const approval =
    action === "require_approval"
      ? mergeTerms(by("require_approval").map((finding) => finding.approval ?? policy.approvals))
      : null;
  return {
    action,
    reasons: distinct(against.map((finding) => finding.reason)),
    rules: distinct(by(action).flatMap((finding) => (finding.rule === null ? [] : [finding.rule]))),
    approval,
    causes:
      approval === null
        ? []
        : by(action).map(({ rule, reason, cause }) => ({ rule, reason: cause ?? reason })),
    warnings: distinct(by("warn").map((finding) => finding.reason)),
    hints: distinct(against.flatMap(({ hint }) => (hint == null ? [] : [hint]))),
  };
}

/** The findings that count: those that no explicit allow lifts. */
export function effectiveFindings(findings: readonly Finding[]): readonly Finding[] {
  const allowed = findings.some(({ stage, action }) => stage === "rule" && action === "allow");
  return allowed ? findings.filter(({ stage }) => !LIFTED_BY_ALLOW.has(stage)) : findings;
}

function distinct(texts: readonly string[]): string[] {
  return [...new Set(texts)];
}
