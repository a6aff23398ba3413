/** All stages of a policy over one call, in pipeline order. */
import type { PolicyCall } from "./call.ts";
import { type Combined, combine } from "./combine.ts";
import type { Policy } from "./compile.ts";
import { checkContent } from "./content.ts";
import type { CounterDoc } from "./counters.ts";
import type { Finding } from "./finding.ts";
import { checkFlows, flowKeys } from "./flows.ts";
import { type Charge, type CounterNeed, checkLimits, limitKeys } from "./limits.ts";
import { checkRisk, type RiskResult } from "./risk.ts";
import { checkRules } from "./rules.ts";
import { checkTimes } from "./times.ts";
import { checkUndo } from "./undo.ts";

export interface Evaluation extends Combined {
  findings: Finding[];
  risk: RiskResult;
  /** Counters to write if the call goes ahead. */
  charges: Charge[];
}

/** The counters that judging this call will read, and may write. */
export function counterKeys(policy: Policy, call: PolicyCall): CounterNeed[] {
  return [...limitKeys(policy, call), ...flowKeys(policy, call)];
}

export function evaluatePolicy(
  policy: Policy,
  call: PolicyCall,
  now_ms: number,
  counters: ReadonlyMap<string, CounterDoc> = new Map(),
): Evaluation {
  const limits = checkLimits(policy, call, counters, now_ms);
  const flows = checkFlows(policy, call, counters, now_ms);
  const risk = checkRisk(policy, call);
  const findings = checkTimes(policy, call, now_ms);
  const content = checkContent(policy, call);
  for (const more of [content, checkRules(policy, call), flows.findings, limits.findings]) {
    for (const finding of more) findings.push(finding);
  }
  for (const finding of checkUndo(policy, call, now_ms)) findings.push(finding);
  if (risk.finding !== null) findings.push(risk.finding);
  const charges = [...limits.charges, ...flows.charges];
  const { action, reasons, rules, approval, causes, warnings, hints } = combine(policy, findings);
  // Named one by one: copying an object of unknown shape takes longer than all that was decided.
  return { action, reasons, rules, approval, causes, warnings, hints, findings, risk, charges };
}
