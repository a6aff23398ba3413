/** Bar chart of calls per day, blocked calls on top of accepted ones. In long periods, a bar covers several days. */
import { html } from "hono/html";
import { formatCountOf } from "../../../kernel/text/phrases.ts";
import type { HtmlMarkup } from "../html-page.ts";
import type { PeriodReport } from "./period.ts";

const WIDTH = 920;
const HEIGHT = 220;
const LEFT = 46;
const BOTTOM = 28;
const TOP = 10;
const MAX_CHART_BARS = 92;

/** Blocked calls are striped, so that the chart is readable without color. */
const STRIPED = html`<defs><pattern id="striped" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="f-bad" width="6" height="6"/><rect class="f-gap" width="2" height="6"/></pattern></defs>`;

interface Bar {
  from: string;
  to: string;
  accepted: number;
  blocked: number;
}

/** The bars, the number of calls at full height, and the days per bar. */
export function daysChartBars(days: PeriodReport["per_day"]): {
  bars: Bar[];
  most: number;
  days_each: number;
} {
  const days_each = Math.max(1, Math.ceil(days.length / MAX_CHART_BARS));
  const bars = grouped(days, days_each);
  const most = Math.max(1, ...bars.map(({ accepted, blocked }) => accepted + blocked));
  return { bars, most, days_each };
}

export function daysChart(days: PeriodReport["per_day"]): HtmlMarkup {
  const { bars, most, days_each: each } = daysChartBars(days);
  const plot = HEIGHT - TOP - BOTTOM;
  const slot = (WIDTH - LEFT) / bars.length;
  const y = (n: number): number => TOP + plot - (n / most) * plot;
  const shape = (bar: Bar, i: number): HtmlMarkup => {
    const width = round(Math.min(slot * 0.8, 60));
    const x = round(LEFT + i * slot + (slot - width) / 2);
    const top = y(bar.accepted + bar.blocked);
    const name = bar.from === bar.to ? bar.from : `${bar.from} to ${bar.to}`;
    return html`<g><title>${name}: ${bar.accepted} accepted, ${bar.blocked} blocked</title>
<rect class="f-main" x="${x}" y="${round(y(bar.accepted))}" width="${width}" height="${round(TOP + plot - y(bar.accepted))}"/>
<rect fill="url(#striped)" x="${x}" y="${round(top)}" width="${width}" height="${round(y(bar.accepted) - top)}"/></g>
`;
  };
  const note = each === 1 ? "" : html`<p class="note">Each bar stands for ${formatCountOf(each, "day")}.</p>`;
  return html`<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" role="img" aria-label="Calls per day">
${STRIPED}
<line class="axis" x1="${LEFT}" y1="${TOP}" x2="${WIDTH}" y2="${TOP}"/>
<line class="axis" x1="${LEFT}" y1="${TOP + plot}" x2="${WIDTH}" y2="${TOP + plot}"/>
<text x="${LEFT - 8}" y="${TOP + 4}" text-anchor="end">${most}</text>
<text x="${LEFT - 8}" y="${TOP + plot + 4}" text-anchor="end">0</text>
${bars.map(shape)}
${labels(bars).map(({ i, anchor }) => html`<text x="${round(labelX(i, anchor, slot))}" y="${HEIGHT - 8}" text-anchor="${anchor}">${bars[i]!.from}</text>\n`)}</svg>
<p class="note"><svg class="key" viewBox="0 0 10 10" width="10" height="10" style="display:inline"><rect class="f-main" width="10" height="10"/></svg> accepted
<svg class="key" viewBox="0 0 10 10" width="10" height="10" style="display:inline"><rect fill="url(#striped)" width="10" height="10"/></svg> blocked (striped); days in UTC</p>${note}`;
}

function grouped(days: PeriodReport["per_day"], each: number): Bar[] {
  const bars: Bar[] = [];
  for (let i = 0; i < days.length; i += each) {
    const part = days.slice(i, i + each);
    const sum = (pick: (one: (typeof days)[number]) => number) =>
      part.reduce((total, one) => total + pick(one), 0);
    bars.push({
      from: part[0]!.day,
      to: part[part.length - 1]!.day,
      accepted: sum(({ accepted }) => accepted),
      blocked: sum(({ blocked }) => blocked),
    });
  }
  return bars;
}

/** A label under each of a few bars, else for the first day, the middle and the last. */
function labels(bars: readonly Bar[]): { i: number; anchor: "start" | "middle" | "end" }[] {
  if (bars.length < 5) return bars.map((_, i) => ({ i, anchor: "middle" }));
  return [
    { i: 0, anchor: "start" },
    { i: bars.length >> 1, anchor: "middle" },
    { i: bars.length - 1, anchor: "end" },
  ];
}

function labelX(i: number, anchor: "start" | "middle" | "end", slot: number): number {
  return LEFT + slot * (anchor === "start" ? i : anchor === "end" ? i + 1 : i + 0.5);
}

function round(n: number): number {
  return Math.round(n * 10) / 10;
}
