/** The charts of an agent: calls by hour, ages of its open requests, undos by day, and ages of its tools' drills. */
import type { ActorView } from "../../../operations/actors/actor.ts";
import { type HtmlFragment, safeHtml } from "../../html.ts";
import { cardBlock } from "../../parts/blocks.ts";
import { decisionsChart } from "../../parts/decisions-chart.ts";
import { type ChartSeries, patternedChart } from "../../parts/patterned.ts";
import { dayText, isoTimestamp } from "../../parts/time.ts";

export function actorCharts(view: ActorView, now: number): HtmlFragment {
  return safeHtml`${callsCard(view)}${requestsCard(view, now)}${undosCard(view)}${drillsCard(view, now)}`;
}

function callsCard({ calls }: ActorView): HtmlFragment {
  const failed = calls.hours.reduce((sum, hour) => sum + hour.failed, 0);
  const chart = decisionsChart("calls", "Calls by hour and decision, the last 24 hours", calls.hours);
  return cardBlock(
    { title: "Calls", aside: `${failed} failed${calls.more ? ", older ones not counted" : ""}` },
    chart,
  );
}

const ONE_SERIES = (label: string): readonly ChartSeries<"n">[] => [
  { key: "n", label, fill: "d-waiting", pattern: "rising" },
];

/** Ages in minutes; the last group has no end. */
const REQUEST_AGES = [
  [5, "under 5 min"],
  [60, "under 1 h"],
  [240, "under 4 h"],
  [1_440, "under 1 day"],
  [Number.POSITIVE_INFINITY, "older"],
] as const;
const MINUTE_MS = 60_000;

function requestsCard({ requests }: ActorView, now: number): HtmlFragment | null {
  if (requests.length === 0) return null;
  const ages = requests.map(({ requested_ms }) => (now - requested_ms) / MINUTE_MS);
  return cardBlock(
    { title: "Open requests by age" },
    byAge("requests", "Open requests by age", "requests", ages, REQUEST_AGES),
  );
}

const DRILL_AGES = [
  [1, "under 1 day"],
  [7, "under 7 days"],
  [30, "under 30 days"],
  [Number.POSITIVE_INFINITY, "older"],
] as const;
const DAY_MS = 86_400_000;

function drillsCard({ drills }: ActorView, now: number): HtmlFragment | null {
  if (drills.length === 0) return null;
  const ages = drills.map(({ at_ms }) => (now - at_ms) / DAY_MS);
  const failing = drills.filter(({ passed }) => !passed).map(({ tool }) => tool);
  return cardBlock(
    {
      title: "Drills of its tools by age",
      aside: failing.length === 0 ? "all passed" : `failed: ${failing.join(", ")}`,
    },
    byAge("drills", "Drills of its tools by age", "drills", ages, DRILL_AGES),
  );
}

function byAge(
  id: string,
  summary: string,
  label: string,
  ages: readonly number[],
  groups: readonly (readonly [below: number, name: string])[],
): HtmlFragment {
  const columns = groups.map(([below, name], i) => {
    const from = groups[i - 1]?.[0] ?? Number.NEGATIVE_INFINITY;
    return {
      label: name,
      title: name,
      values: { n: ages.filter((age) => age >= from && age < below).length },
    };
  });
  return patternedChart({ id, summary, first_head: "Age", series: ONE_SERIES(label), columns });
}

const UNDO_SERIES: readonly ChartSeries<"undone" | "failed">[] = [
  { key: "undone", label: "undone", fill: "d-allowed", pattern: "plain" },
  { key: "failed", label: "could not be undone", fill: "d-refused", pattern: "crossed" },
];

function undosCard({ undos }: ActorView): HtmlFragment | null {
  if (undos.every(({ undone, failed }) => undone + failed === 0)) return null;
  const columns = undos.map(({ day_ms, undone, failed }, i) => ({
    label: i % 3 === 1 ? dayText(day_ms) : "",
    title: isoTimestamp(day_ms).slice(0, 10),
    values: { undone, failed },
  }));
  const summary = "Undos by day, the last 14 days";
  return cardBlock(
    { title: "Undos" },
    patternedChart({ id: "undos", summary, first_head: "Day", series: UNDO_SERIES, columns }),
  );
}
