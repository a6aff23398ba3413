/** Small charts rendered on the server. Each has a text alternative. */
import { COUNTED_DECISIONS, type DecisionName, type HourDecisions } from "../hour-counts.ts";
import { type HtmlFragment, html } from "../html.ts";
import type { MarkTone } from "./marks.ts";
import { isoTimestamp } from "./time.ts";

/** In reports and alerts, "blocked" calls are the last two together. */
const DECISION_LABELS: Record<DecisionName, string> = {
  allowed: "allowed",
  would_block: "would block",
  waiting: "held for approval",
  refused: "refused",
};

const WIDTH = 720;
const HEIGHT = 150;
const BASE = 126;
const TOP = 10;

/** Calls of the last 24 hours, one bar per hour, coloured by decision. */
export function hoursChart(hours: readonly HourDecisions[], summary: string): HtmlFragment {
  const totals = hours.map((hour) =>
    COUNTED_DECISIONS.reduce((sum, name) => sum + Math.max(0, hour[name]), 0),
  );
  const most = niceCeiling(Math.max(1, ...totals));
  const slot = (WIDTH - 34) / hours.length;
  const bars = hours.map((hour, i) => bar(hour, 34 + i * slot, slot, most, totals[i]!));
  const lines = [0, 0.5, 1].map((part) => {
    const y = (BASE - part * (BASE - TOP)).toFixed(1);
    return html`<line class="grid" x1="34" x2="${WIDTH}" y1="${y}" y2="${y}"/><text class="axis" x="28" y="${y}" dy="3" text-anchor="end">${tick(most * part)}</text>`;
  });
  const labels = hours.map((hour, i) =>
    i % 4 === 3
      ? html`<text class="axis" x="${(34 + (i + 0.5) * slot).toFixed(1)}" y="${HEIGHT - 6}" text-anchor="middle" data-hour="${isoTimestamp(hour.from_ms)}">${isoTimestamp(hour.from_ms).slice(11, 16)}</text>`
      : null,
  );
  return html`<svg class="chart" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${summary}">${lines}${bars}${labels}</svg>`;
}

function bar(hour: HourDecisions, x: number, slot: number, most: number, total: number): HtmlFragment {
  let y = BASE;
  const parts = COUNTED_DECISIONS.map((name) => {
    const n = Math.max(0, hour[name]);
    if (n === 0) return null;
    const height = Math.max(1.5, (n / most) * (BASE - TOP));
    y -= height;
    return html`<rect class="d-${name}" x="${(x + slot * 0.14).toFixed(1)}" y="${y.toFixed(1)}" width="${(slot * 0.72).toFixed(1)}" height="${height.toFixed(1)}" rx="1.5"/>`;
  });
  const words = COUNTED_DECISIONS.filter((name) => hour[name] > 0).map(
    (name) => `${hour[name]} ${DECISION_LABELS[name]}`,
  );
  const title = `from ${isoTimestamp(hour.from_ms).slice(11, 16)} UTC: ${total === 0 ? "no calls" : words.join(", ")}`;
  return html`<g><title>${title}</title><rect class="hover" x="${x.toFixed(1)}" y="${TOP}" width="${slot.toFixed(1)}" height="${BASE - TOP}"/>${parts}</g>`;
}

export function chartLegend(totals: Record<DecisionName, number>): HtmlFragment {
  return html`<ul class="legend">${COUNTED_DECISIONS.map(
    (name) =>
      html`<li><span class="swatch d-${name}" aria-hidden="true"></span>${DECISION_LABELS[name]} <b>${totals[name].toLocaleString("en")}</b></li>`,
  )}</ul>`;
}

/** Rounds up to a number such as 1, 2, 5, 10 or 20 for the end of an axis. */
function niceCeiling(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((step) => step * power).find((step) => step >= value) ?? value;
}

function tick(value: number): string {
  if (value >= 1_000) return `${+(value / 1_000).toFixed(1)}k`;
  return Number.isInteger(value) ? String(value) : "";
}

/** Bar for a share of a maximum. The text next to it gives the number. */
export function meterBar(value: number, most: number, tone: MarkTone): HtmlFragment {
  const width = Math.max(0, Math.min(1, most === 0 ? 0 : value / most)) * 100;
  return html`<svg class="meter ${tone}" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true"><rect class="track" width="100" height="6" rx="3"/><rect class="fill" width="${width.toFixed(1)}" height="6" rx="3"/></svg>`;
}

export interface ArcNode {
  step: number;
  tool: string;
  tone: MarkTone;
  depends_on: readonly number[];
}

const GAP = 34;

/** Steps of a run in a row, with an arc from each step to the steps that it depends on. */
export function dependencyArcs(nodes: readonly ArcNode[]): HtmlFragment {
  const place = new Map(nodes.map(({ step }, i) => [step, 18 + i * GAP]));
  const arcs: HtmlFragment[] = [];
  let reach = 0;
  for (const { step, depends_on } of nodes) {
    for (const other of depends_on) {
      const [from, to] = [place.get(other), place.get(step)];
      if (from === undefined || to === undefined) continue;
      const radius = (to - from) / 2;
      reach = Math.max(reach, radius);
      arcs.push(
        html`<path class="arc" d="M${from} 0 A${radius} ${radius * 0.7} 0 0 1 ${to} 0"><title>step ${step} needs step ${other}</title></path>`,
      );
    }
  }
  const top = Math.ceil(reach * 0.7) + 6;
  const width = 36 + (nodes.length - 1) * GAP;
  const points = nodes.map(({ step, tool, tone }) => {
    const x = place.get(step)!;
    return html`<a href="#step-${step}"><title>step ${step}: ${tool}</title><circle class="node ${tone}" cx="${x}" cy="0" r="11"/><text class="node-number" x="${x}" y="4" text-anchor="middle">${step}</text></a>`;
  });
  const words =
    arcs.length === 0 ? "No step depends on another." : `${nodes.length} steps and what they depend on.`;
  return html`<svg class="arcs" viewBox="0 ${-top} ${width} ${top + 14}" width="${width}" height="${top + 14}" role="group" aria-label="${words}">${arcs}${points}</svg>`;
}
