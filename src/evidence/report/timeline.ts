/** Timeline of a run: one bar per step, from its acceptance to its outcome, with a mark at its undo. */
import { html } from "hono/html";
import { clipText, formatCountOf } from "../../kernel/text/phrases.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import { spellOutInvisible, toIsoTime } from "./external-text.ts";
import { type HtmlMarkup, toneOf } from "./html-page.ts";
import type { ReportStep } from "./run.ts";

const WIDTH = 920;
const LEFT = 250;
const RIGHT = 20;
const ROW = 20;
const MAX_TIMELINE_ROWS = 60;
const LABEL_CHARS = 34;

export function runTimeline(steps: readonly ReportStep[], trail: readonly LedgerRecord[]): HtmlMarkup {
  if (steps.length === 0) return html`<p class="note">No call was accepted, so there is no timeline.</p>`;
  const shown = steps.slice(0, MAX_TIMELINE_ROWS);
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
<text x="${LEFT}" y="${height - 8}">${toIsoTime(from)}</text>
<text x="${WIDTH - RIGHT}" y="${height - 8}" text-anchor="end">${toIsoTime(to)}</text>
</svg>${rest > 0 ? html`<p class="note">The first ${MAX_TIMELINE_ROWS} steps; ${formatCountOf(rest, "more is", "more are")} listed below.</p>` : ""}`;
}

function row(
  step: ReportStep,
  i: number,
  x: (ms: number) => number,
  end: number,
  undone: number | undefined,
): HtmlMarkup {
  const y = ROW * i + 4;
  const start = x(step.intended_ms);
  // An unfinished step extends to the end, because it may still be running.
  const width = Math.max(3, x(step.finished_ms ?? end) - start);
  const label = clipText(`${step.step}  ${spellOutInvisible(step.tool)}`, LABEL_CHARS);
  const mark =
    undone === undefined
      ? ""
      : html`<circle class="f-idle" cx="${round(x(undone))}" cy="${y + 7}" r="5"><title>undone ${toIsoTime(undone)}</title></circle>`;
  return html`<text class="ink" x="0" y="${y + 11}">${label}</text>
<rect class="f-${toneOf(step.status)}" x="${round(start)}" y="${y}" width="${round(width)}" height="14" rx="2"><title>${spellOutInvisible(step.tool)}: ${step.status}</title></rect>${mark}
`;
}

function round(n: number): number {
  return Math.round(n * 10) / 10;
}
