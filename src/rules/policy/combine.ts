/**
 * Combines many findings into one decision. The strictest action wins. An explicit allow overrides only time windows
 * and the risk score, not a rule, freeze, content check, flow, limit or budget.
 */
import { type MergedApproval, mergeTerms } from "./checks/approvals.ts";
import type { CompiledPolicy } from "./compile.ts";
import type { PolicyFinding, RuleAction, StageName } from "./finding.ts";

export interface CombinedDecision {
  action: RuleAction;
  /** Reasons against the call, in pipeline order; empty if it is allowed. */
  reasons: string[];
  /** Ids of the entries with the winning action. */
  rules: string[];
  /** Requirements of the approval; null unless the action is `require_approval`. */
  approval: MergedApproval | null;
  /** Entries that require the approval, with their reasons; empty unless the action is `require_approval`. */
  causes: { rule: string | null; reason: string }[];
  warnings: string[];
  /** Alternatives for the agent, from the hints of the entries that decided against the call. */
  hints: string[];
}

const LIFTED_BY_ALLOW: ReadonlySet<StageName> = new Set(["risk", "window"]);

/** Expects `findings` in pipeline order: times, content, rules, flows, limits and budgets, risk. */
export function combineFindings(
  policy: Pick<CompiledPolicy, "approvals">,
  findings: readonly PolicyFinding[],
): CombinedDecision {
  // Fast path: most calls have no findings.
  if (findings.length === 0)
    return { action: "allow", reasons: [], rules: [], approval: null, causes: [], warnings: [], hints: [] };
  const effective = effectiveFindings(findings);
  const by = (action: PolicyFinding["action"]) => effective.filter((finding) => finding.action === action);
  const action: RuleAction =
    by("deny").length > 0 ? "deny" : by("require_approval").length > 0 ? "require_approval" : "allow";
  const against = effective.filter(
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

/** Findings that no explicit allow overrides. */
export function effectiveFindings(findings: readonly PolicyFinding[]): readonly PolicyFinding[] {
  const allowed = findings.some(({ stage, action }) => stage === "rule" && action === "allow");
  return allowed ? findings.filter(({ stage }) => !LIFTED_BY_ALLOW.has(stage)) : findings;
}

function distinct(texts: readonly string[]): string[] {
  return [...new Set(texts)];
}
