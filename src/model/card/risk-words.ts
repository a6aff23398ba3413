/** A risk score in words that add up to it. */
import type { Manifest } from "../manifest/types.ts";
import { RISK_FACTORS, type RiskFactor } from "../policy/risk-weights.ts";
import type { Because, CardRisk } from "./types.ts";

const NAMES: Record<RiskFactor, string> = {
  effect: "effect",
  blast_radius: "blast radius",
  data_class: "data class",
  environment: "environment",
};

export function riskOf(
  risk: Because["risk"],
  manifest: Manifest | null,
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
    label: labels[factor] ?? "not declared",
    points: risk.factors[factor],
  }));
  const counting = factors.filter(({ points }) => points > 0).sort((a, b) => b.points - a.points);
  const parts = counting.map(({ factor, label, points }) => `${NAMES[factor]} ${label} ${points}`);
  const sum = factors.reduce((total, { points }) => total + points, 0);
  const text = parts.length === 0 ? "no label adds to it" : `${parts.join(" + ")}${counted(sum, risk.score)}`;
  return { score: risk.score, factors, text };
}

function counted(sum: number, score: number): string {
  if (sum === score) return ` = ${score}`;
  return sum > 100 ? ` = ${sum}, counted as ${score}, the most there is` : ` = ${sum}, rounded to ${score}`;
}
