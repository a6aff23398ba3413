/** Risk as people read it: a word, the labels that carry it, and the score that the rules count with. */
import type { RiskFactor } from "../../rules/policy/checks/default-weights.ts";
import { type HtmlFragment, safeHtml } from "../html.ts";
import { meterBar } from "./charts.ts";
import { type MarkTone, riskTone } from "./marks.ts";

const WORDS: Partial<Record<MarkTone, string>> = { bad: "High", warn: "Medium", good: "Low" };
/** Labels with fewer points do not explain a score. */
const MIN_POINTS = 10;

export interface RiskLabel {
  factor: RiskFactor;
  label: string | null;
  points: number;
}

export const riskWord = (score: number): string => WORDS[riskTone(score)] ?? "";

/** Such as `High: external, financial`. The effect is named only where no undo shows it next to the risk. */
export function riskWords(score: number, labels: readonly RiskLabel[]): string {
  const shown = [...labels]
    .sort((a, b) => b.points - a.points)
    .flatMap(({ factor, label, points }) => {
      if (points < MIN_POINTS) return [];
      if (label === null) return [`${factor.replace("_", " ")} not declared`];
      return factor === "effect" && label !== "irreversible" ? [] : [label];
    });
  return shown.length === 0 ? riskWord(score) : `${riskWord(score)}: ${shown.join(", ")}`;
}

/** The words, then the score as a number and a bar. */
export function riskLine(score: number, labels: readonly RiskLabel[]): HtmlFragment {
  return safeHtml`<p class="risk-words tone ${riskTone(score)}">${riskWords(score, labels)}</p><p class="risk"><b>${score}</b>${meterBar(score, 100, riskTone(score))}</p>`;
}
