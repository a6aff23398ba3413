/** Runs all stages of a policy over one call, in pipeline order. */
import type { PolicyCall } from "./call.ts";
import { checkContent } from "./checks/content.ts";
import type { CounterDoc } from "./checks/counters.ts";
import { checkFlows, flowKeys } from "./checks/flows.ts";
import { type CounterCharge, type CounterNeed, checkLimits, limitKeys } from "./checks/limits.ts";
import { checkRisk, type RiskResult } from "./checks/risk.ts";
import { checkTimes } from "./checks/times.ts";
import { checkUndo } from "./checks/undo-stage.ts";
import { type CombinedDecision, combineFindings } from "./combine.ts";
import type { CompiledPolicy } from "./compile.ts";
import type { PolicyFinding } from "./finding.ts";
import { checkRules } from "./rules.ts";

export interface PolicyEvaluation extends CombinedDecision {
  findings: PolicyFinding[];
  risk: RiskResult;
  /** Counters to write if the call is accepted. */
  charges: CounterCharge[];
}

/** Counters that a decision on this call reads and possibly writes. */
export function counterKeys(policy: CompiledPolicy, call: PolicyCall): CounterNeed[] {
  return [...limitKeys(policy, call), ...flowKeys(policy, call)];
}

export function evaluatePolicy(
  policy: CompiledPolicy,
  call: PolicyCall,
  now_ms: number,
  counters: ReadonlyMap<string, CounterDoc> = new Map(),
): PolicyEvaluation {
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
  const { action, reasons, rules, approval, causes, warnings, hints } = combineFindings(policy, findings);
  // Lists the fields: spreading an object of unknown shape takes longer than the evaluation.
  return { action, reasons, rules, approval, causes, warnings, hints, findings, risk, charges };
}
