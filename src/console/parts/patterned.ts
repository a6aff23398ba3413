/** Charts that read without colour: each series has its own pattern, and the same numbers follow as a table. */
import { type HtmlFragment, safeHtml } from "../html.ts";
import { tableBlock } from "./blocks.ts";
import { foldedForm } from "./forms.ts";
import { formatHour, isoTimestamp } from "./time.ts";

/** A series: its CSS class for the colour, its name for people, and its pattern. */
export interface ChartSeries<K extends string> {
  key: K;
  label: string;
  fill: string;
  pattern: PatternName;
}

/** Lines in a square of eight units. */
const PATTERNS = {
  plain: "",
  rising: "M0 8 8 0",
  falling: "M0 0 8 8",
  crossed: "M0 0 8 8M0 8 8 0",
  level: "M0 4H8",
} as const;
type PatternName = keyof typeof PATTERNS;

export interface ChartColumn<K extends string> {
  /** Under the column; empty for none. */
  label: string;
  /** In the table and on hover. */
  title: string;
  /** Start of the hour that the column counts. Scripts then show the label in the reader's time zone. */
  hour_ms?: number;
  values: Readonly<Record<K, number>>;
}

const WIDTH = 720;
const HEIGHT = 150;
const LEFT = 34;
const TOP = 10;
const BASE = 126;

interface ChartOptions<K extends string> {
  id: string;
  /** In words, for people who do not see the chart. */
  summary: string;
  first_head: string;
  series: readonly ChartSeries<K>[];
  columns: readonly ChartColumn<K>[];
}

/** Stacked columns with a legend, and the numbers as a table behind a click. */
export function patternedChart<K extends string>(options: ChartOptions<K>): HtmlFragment {
  const { id, summary, series, columns, first_head } = options;
  const totals = columns.map(({ values }) => series.reduce((sum, { key }) => sum + count(values, key), 0));
  const most = niceCeiling(Math.max(1, ...totals));
  const slot = (WIDTH - LEFT) / Math.max(1, columns.length);
  const lines = [0, most / 2, most].map((value) => {
    const y = yOf(value, most);
    return safeHtml`<line class="grid" x1="${LEFT}" x2="${WIDTH}" y1="${y}" y2="${y}"/><text class="axis" x="${LEFT - 6}" y="${y}" dy="3" text-anchor="end">${tick(value)}</text>`;
  });
  const bars = columns.map((column, i) => bar(options, column, LEFT + i * slot, slot, most));
  const rows = columns
    .filter((_, i) => totals[i]! > 0)
    .map(({ title, hour_ms, values }) => [
      hour_ms === undefined ? title : formatHour(hour_ms),
      ...series.map(({ key }) => String(count(values, key))),
    ]);
  const heads = [first_head, ...series.map(({ label }) => label)];
  return safeHtml`<svg class="chart" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${summary}"><defs>${series.map((one) => definition(id, one.pattern))}</defs>${lines}${bars}</svg>
${patternedLegend(id, series, columns)}
${rows.length === 0 ? null : foldedForm("As a table", tableBlock(summary, heads, rows))}`;
}

const count = <K extends string>(values: Readonly<Record<K, number>>, key: K): number =>
  Math.max(0, values[key]);
const yOf = (value: number, most: number): string => (BASE - (value / most) * (BASE - TOP)).toFixed(1);

/** Rounds up to a number such as 1, 2, 5, 10 or 20 for the end of an axis. */
function niceCeiling(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((step) => step * power).find((step) => step >= value) ?? value;
}

function tick(value: number): string {
  if (value >= 1_000) return `${+(value / 1_000).toFixed(1)}k`;
  return Number.isInteger(value) ? String(value) : "";
}

function definition(id: string, name: PatternName): HtmlFragment {
  return safeHtml`<pattern id="${id}-${name}" width="8" height="8" patternUnits="userSpaceOnUse"><path class="hatch" d="${PATTERNS[name]}"/></pattern>`;
}

function bar<K extends string>(
  { id, series }: ChartOptions<K>,
  { label, title, hour_ms, values }: ChartColumn<K>,
  x: number,
  slot: number,
  most: number,
): HtmlFragment {
  let y = BASE;
  const parts = series.map(({ key, fill, pattern }) => {
    const n = count(values, key);
    if (n === 0) return null;
    const height = Math.max(2, (n / most) * (BASE - TOP));
    y -= height;
    const place = safeHtml`x="${(x + slot * 0.14).toFixed(1)}" y="${y.toFixed(1)}" width="${(slot * 0.72).toFixed(1)}" height="${height.toFixed(1)}"`;
    return safeHtml`<rect class="${fill}" ${place}/><rect fill="url(#${id}-${pattern})" ${place}/>`;
  });
  const words = series
    .filter(({ key }) => count(values, key) > 0)
    .map(({ key, label: name }) => `${count(values, key)} ${name}`);
  const hour = hour_ms === undefined ? null : safeHtml` data-hour="${isoTimestamp(hour_ms)}"`;
  const caption =
    label === ""
      ? null
      : safeHtml`<text class="axis" x="${(x + slot / 2).toFixed(1)}" y="${HEIGHT - 6}" text-anchor="middle"${hour}>${label}</text>`;
  const area = safeHtml`<rect class="hover" x="${x.toFixed(1)}" y="${TOP}" width="${slot.toFixed(1)}" height="${BASE - TOP}"/>`;
  return safeHtml`<g><title>${title}: ${words.length === 0 ? "none" : words.join(", ")}</title>${area}${parts}${caption}</g>`;
}

function patternedLegend<K extends string>(
  id: string,
  series: readonly ChartSeries<K>[],
  columns: readonly ChartColumn<K>[],
): HtmlFragment {
  const total = (key: K) => columns.reduce((sum, { values }) => sum + count(values, key), 0);
  return safeHtml`<ul class="legend">${series.map(
    ({ key, label, fill, pattern }) =>
      safeHtml`<li><svg class="swatch" viewBox="0 0 16 10" width="16" height="10" aria-hidden="true"><rect class="${fill}" width="16" height="10"/><rect fill="url(#${id}-${pattern})" width="16" height="10"/></svg>${label} <b>${total(key).toLocaleString("en")}</b></li>`,
  )}</ul>`;
}
