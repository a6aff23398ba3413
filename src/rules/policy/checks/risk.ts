/** Risk stage: a score from 0 to 100 from the call's labels, and the policy's response to it. */
import type { PolicyCall } from "../call.ts";
import type { CompiledPolicy } from "../compile.ts";
import type { PolicyFinding } from "../finding.ts";
import { RISK_FACTORS, type RiskFactor } from "./default-weights.ts";

export interface RiskResult {
  score: number;
  /** Points of each label; all zero if the policy has no risk section. */
  factors: Record<RiskFactor, number>;
  finding: PolicyFinding | null;
}

export function checkRisk(policy: CompiledPolicy, call: Pick<PolicyCall, RiskFactor>): RiskResult {
  const factors: Record<RiskFactor, number> = { effect: 0, blast_radius: 0, data_class: 0, environment: 0 };
  const { risk } = policy;
  if (risk === null) return { score: 0, factors, finding: null };
  let sum = 0;
  for (const factor of RISK_FACTORS) {
    const label = call[factor];
    const weights = risk.weights[factor];
    const points =
      (label === null ? weights.get("unset") : (weights.get(alias(label)) ?? weights.get("*"))) ?? 0;
    factors[factor] = points;
    sum += points;
  }
  const score = Math.min(100, Math.round(sum));
  const parts = RISK_FACTORS.map((factor) => `${factor} ${factors[factor]}`).join(", ");
  const say = (action: "deny" | "require_approval", threshold: number): PolicyFinding => ({
    stage: "risk",
    action,
    reason: `risk score ${score} is at or above ${threshold} (${parts})`,
    cause: `risk score ${score} is at or above ${threshold}`,
    rule: null,
  });
  if (risk.deny_at !== null && score >= risk.deny_at)
    return { score, factors, finding: say("deny", risk.deny_at) };
  if (risk.require_approval_at !== null && score >= risk.require_approval_at) {
    return { score, factors, finding: say("require_approval", risk.require_approval_at) };
  }
  return { score, factors, finding: null };
}

/** `read_only` is an alias of `read`. */
function alias(label: string): string {
  return label === "read_only" ? "read" : label;
}
