/** Chart of calls by hour and decision, for everybody and for one agent. */
import { COUNTED_DECISIONS, type DecisionName, type HourDecisions } from "../hour-counts.ts";
import type { HtmlFragment } from "../html.ts";
import { type ChartSeries, patternedChart } from "./patterned.ts";
import { hourText } from "./time.ts";

/** In reports and alerts, "blocked" calls are the last two together. */
const DECISION_STYLES: Record<DecisionName, Omit<ChartSeries<DecisionName>, "key">> = {
  allowed: { label: "allowed", fill: "d-allowed", pattern: "plain" },
  would_block: { label: "would block", fill: "d-would_block", pattern: "level" },
  waiting: { label: "held for approval", fill: "d-waiting", pattern: "rising" },
  refused: { label: "refused", fill: "d-refused", pattern: "crossed" },
};

/** One column per hour; every fourth has a label. */
export function decisionsChart(id: string, summary: string, hours: readonly HourDecisions[]): HtmlFragment {
  const columns = hours.map(({ from_ms, ...values }, i) => ({
    label: i % 4 === 3 ? hourText(from_ms) : "",
    title: `from ${hourText(from_ms)} UTC`,
    hour_ms: from_ms,
    values,
  }));
  const series = COUNTED_DECISIONS.map((key) => ({ key, ...DECISION_STYLES[key] }));
  return patternedChart({ id, summary, first_head: "From", series, columns });
}
