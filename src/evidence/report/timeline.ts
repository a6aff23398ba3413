/** The picture of a run: one bar a step, from its acceptance to its outcome, and a mark where it was undone. */
import { html } from "hono/html";
import { clip, plural } from "../../kernel/words.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import { type Markup, toneOf } from "./page.ts";
import type { ReportStep } from "./run.ts";
import { time, visible } from "./text.ts";

const WIDTH = 920;
const LEFT = 250;
const RIGHT = 20;
const ROW = 20;
const MOST_ROWS = 60;
const LABEL_CHARS = 34;

export function timeline(steps: readonly ReportStep[], trail: readonly LedgerRecord[]): Markup {
  if (steps.length === 0) return html`<p class="note">No call was accepted, so there is nothing to draw.</p>`;
  const shown = steps.slice(0, MOST_ROWS);
  const undone = new Map(
    trail.filter(({ event }) => event === "compensated").map(({ step, ts_ms }) => [step, ts_ms]),
  );
  const times = shown.flatMap(({ step, intended_ms, finished_ms }) => [
    intended_ms,
    finished_ms,
    undone.get(step),
  ]);
  const known = times.filter((ms): ms is number => typeof ms === "number");
  const [from, to] = [Math.min(...known), Math.max(...known)];
  const x = (ms: number): number => LEFT + ((ms - from) / Math.max(1, to - from)) * (WIDTH - LEFT - RIGHT);
  const height = ROW * shown.length + 34;
  const rest = steps.length - shown.length;
  return html`<svg viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="Timeline of the steps">
${shown.map((step, i) => row(step, i, x, to, undone.get(step.step)))}
<line class="axis" x1="${LEFT}" y1="${height - 24}" x2="${WIDTH - RIGHT}" y2="${height - 24}"/>
<text x="${LEFT}" y="${height - 8}">${time(from)}</text>
<text x="${WIDTH - RIGHT}" y="${height - 8}" text-anchor="end">${time(to)}</text>
</svg>${rest > 0 ? html`<p class="note">The first ${MOST_ROWS} steps; ${plural(rest, "more is", "more are")} listed below.</p>` : ""}`;
}

function row(
  step: ReportStep,
  i: number,
  x: (ms: number) => number,
  end: number,
  undone: number | undefined,
): Markup {
  const y = ROW * i + 4;
  const start = x(step.intended_ms);
  // A step that was not finished is drawn to the end: it may still be going on.
  const width = Math.max(3, x(step.finished_ms ?? end) - start);
  const label = clip(`${step.step}  ${visible(step.tool)}`, LABEL_CHARS);
  const mark =
    undone === undefined
      ? ""
      : html`<circle class="f-idle" cx="${round(x(undone))}" cy="${y + 7}" r="5"><title>undone ${time(undone)}</title></circle>`;
  return html`<text class="ink" x="0" y="${y + 11}">${label}</text>
<rect class="f-${toneOf(step.status)}" x="${round(start)}" y="${y}" width="${round(width)}" height="14" rx="2"><title>${visible(step.tool)}: ${step.status}</title></rect>${mark}
`;
}

function round(n: number): number {
  return Math.round(n * 10) / 10;
}
