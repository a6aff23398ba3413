/** The rules stage: every rule that matches the call says so; none hides another. */
import { readPath } from "../../kernel/paths.ts";
import type { PolicyCall } from "./call.ts";
import type { Condition, Policy, Rule } from "./compile.ts";
import type { Finding } from "./finding.ts";

export function checkRules(policy: Policy, call: PolicyCall): Finding[] {
  const findings: Finding[] = [];
  for (const rule of policy.rules.matching(call)) {
    const outcome = test(rule.when, call);
    if (outcome === null) continue;
    // What cannot be compared counts against the call: it never earns an allow.
    if (rule.action === "allow" && outcome.uncompared.length > 0) continue;
    findings.push(finding(rule, outcome.uncompared));
  }
  return findings;
}

/** Null when a condition fails; otherwise the paths that could not be compared. */
function test(when: readonly Condition[], call: PolicyCall): { uncompared: string[] } | null {
  const uncompared: string[] = [];
  for (const { path, whenMissing, compare } of when) {
    const actual = readPath(path, { args: call.args, result: undefined });
    const answer = actual === undefined ? whenMissing : compare(actual);
    if (answer === false) return null;
    if (answer === undefined && !uncompared.includes(path.source)) uncompared.push(path.source);
  }
  return { uncompared };
}

function finding(rule: Rule, uncompared: readonly string[]): Finding {
  const doubt = uncompared.map((path) => `could not compare ${path}`).join("; ");
  const reason = doubt === "" ? rule.reason : `${rule.reason}; ${doubt}`;
  const base: Finding = { stage: "rule", action: rule.action, reason, rule: rule.id, hint: rule.hint };
  return rule.action === "require_approval" ? { ...base, approval: rule.approval } : base;
}
