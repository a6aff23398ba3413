/** Explains a risk score as a sum of factors. */
import type { ToolManifest } from "../../rules/manifest/types.ts";
import { RISK_FACTORS, type RiskFactor } from "../../rules/policy/checks/default-weights.ts";
import type { ApprovalCauses, CardRisk } from "./types.ts";

/** The label of a factor that no manifest declares. */
export const UNDECLARED_LABEL = "not declared";

const NAMES: Record<RiskFactor, string> = {
  effect: "effect",
  blast_radius: "blast radius",
  data_class: "data class",
  environment: "environment",
};

export function explainRisk(
  risk: ApprovalCauses["risk"],
  manifest: ToolManifest | null,
  environment: string | null,
): CardRisk | null {
  if (risk === null) return null;
  const labels: Record<RiskFactor, string | null> = {
    effect: manifest?.effect ?? null,
    blast_radius: manifest?.risk.blast_radius ?? null,
    data_class: manifest?.risk.data_class ?? null,
    environment,
  };
  const factors = RISK_FACTORS.map((factor) => ({
    factor,
    label: labels[factor] ?? UNDECLARED_LABEL,
    points: risk.factors[factor],
  }));
  const counting = factors.filter(({ points }) => points > 0).sort((a, b) => b.points - a.points);
  const parts = counting.map(({ factor, label, points }) => `${NAMES[factor]} ${label} ${points}`);
  const sum = factors.reduce((total, { points }) => total + points, 0);
  const text =
    parts.length === 0 ? "no label adds points" : `${parts.join(" + ")}${counted(sum, risk.score)}`;
  return { score: risk.score, factors, text };
}

function counted(sum: number, score: number): string {
  if (sum === score) return ` = ${score}`;
  return sum > 100 ? ` = ${sum}, capped at ${score}` : ` = ${sum}, rounded to ${score}`;
}
