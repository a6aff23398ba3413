/** Rules stage: returns a finding for every rule that matches the call; no rule hides another. */
import { readPath } from "../../kernel/paths.ts";
import type { PolicyCall } from "./call.ts";
import type { CompiledPolicy, PolicyCondition, PolicyRule } from "./compile.ts";
import type { PolicyFinding } from "./finding.ts";

export function checkRules(policy: CompiledPolicy, call: PolicyCall): PolicyFinding[] {
  const findings: PolicyFinding[] = [];
  for (const rule of policy.rules.matching(call)) {
    if (rule.passes_sandboxed && call.sandboxed !== undefined) continue;
    const outcome = test(rule.when, call);
    if (outcome === null) continue;
    // An incomparable value counts against the call, so it never satisfies an allow.
    if (rule.action === "allow" && outcome.uncompared.length > 0) continue;
    findings.push(finding(rule, outcome.uncompared));
  }
  return findings;
}

/** Ids of the rules that ask for approval only outside of the sandbox, and match the call. */
export function liftedBySandbox(policy: CompiledPolicy, call: PolicyCall): string[] {
  if (call.sandboxed === undefined) return [];
  return policy.rules
    .matching(call)
    .filter((rule) => rule.passes_sandboxed && test(rule.when, call) !== null)
    .map(({ id }) => id);
}

/** Null if a condition fails; otherwise the paths that are not comparable. */
function test(when: readonly PolicyCondition[], call: PolicyCall): { uncompared: string[] } | null {
  const uncompared: string[] = [];
  for (const { path, whenMissing, compare } of when) {
    const actual = readPath(path, { args: call.args, result: undefined });
    const answer = actual === undefined ? whenMissing : compare(actual);
    if (answer === false) return null;
    if (answer === undefined && !uncompared.includes(path.source)) uncompared.push(path.source);
  }
  return { uncompared };
}

function finding(rule: PolicyRule, uncompared: readonly string[]): PolicyFinding {
  const uncertainty = uncompared.map((path) => `could not compare ${path}`).join("; ");
  const reason = uncertainty === "" ? rule.reason : `${rule.reason}; ${uncertainty}`;
  const base: PolicyFinding = { stage: "rule", action: rule.action, reason, rule: rule.id, hint: rule.hint };
  return rule.action === "require_approval" ? { ...base, approval: rule.approval } : base;
}
