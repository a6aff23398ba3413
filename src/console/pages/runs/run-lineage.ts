/** Lineage on the run page: which results fed which calls, drawn as arcs between calls in time, and as a list. */
import { emptyHtml, type HtmlFragment, safeHtml } from "../../html.ts";
import { cardBlock } from "../../parts/blocks.ts";
import { formatCountOf } from "../../parts/marks.ts";
import type { LineageView, RunView } from "./run-data.ts";

type Edge = LineageView["edges"][number];

/** Maximum calls in the drawing and rows in the list; the text says how many more there are. */
const MAX_CALLS = 40;
const MAX_ROWS = 200;
const ROW = 26;
const LEFT = 150;

export const VALUE_KIND_WORDS: Record<Edge["kind"], string> = {
  address: "an email address",
  url: "a URL",
  host: "a host name",
  number: "an account or phone number",
  id: "an id",
  file: "a file name",
  amount: "an amount",
  words: "five words in a row",
};

export function lineageCard(run: RunView, { edges }: LineageView): HtmlFragment {
  if (edges.length === 0) return emptyHtml;
  const shown = edges.slice(0, MAX_ROWS);
  const more = edges.length - shown.length;
  return cardBlock(
    { title: "Where values came from", id: "lineage", live: true },
    drawing(run, edges),
    safeHtml`<ul class="items">${shown.map((edge) => safeHtml`<li>${sentence(run, edge)}</li>`)}</ul>`,
    more > 0 ? safeHtml`<p class="soft">${more} more: <code>svc lineage ${run.run_id}</code></p>` : emptyHtml,
  );
}

function sentence(run: RunView, { from, to, kind }: Edge): HtmlFragment {
  return safeHtml`<code>${to.path}</code> of ${stepWords(run, to)} holds ${VALUE_KIND_WORDS[kind]} from ${stepWords(run, from)}`;
}

function stepWords(run: RunView, { run_id, step }: Edge["from"]): HtmlFragment {
  if (run_id !== run.run_id)
    return safeHtml`step ${step} of <a href="/console/runs/${encodeURIComponent(run_id)}">${run_id}</a>`;
  return safeHtml`step ${step} <code>${run.steps[step]?.tool ?? ""}</code>`;
}

/** Calls of this run as points from top to bottom, with an arc for each result that fed a call. */
function drawing(run: RunView, edges: readonly Edge[]): HtmlFragment {
  const own = edges.filter(({ from }) => from.run_id === run.run_id);
  const steps = [...new Set(own.flatMap(({ from, to }) => [from.step, to.step]))]
    .sort((a, b) => a - b)
    .slice(0, MAX_CALLS);
  if (steps.length < 2) return emptyHtml;
  const rowOf = new Map(steps.map((step, i) => [step, ROW * i + ROW / 2]));
  const pairs = new Map<string, { from: number; to: number; kinds: Set<string> }>();
  for (const { from, to, kind } of own) {
    const name = `${from.step} ${to.step}`;
    const pair = pairs.get(name) ?? { from: from.step, to: to.step, kinds: new Set() };
    pairs.set(name, { ...pair, kinds: pair.kinds.add(VALUE_KIND_WORDS[kind]) });
  }
  const arcs = [...pairs.values()].flatMap(({ from, to, kinds }) => {
    const [a, b] = [rowOf.get(from), rowOf.get(to)];
    if (a === undefined || b === undefined) return [];
    const reach = LEFT - 10 - Math.min(120, 24 + (b - a) / 2);
    return [
      safeHtml`<path class="lineage" d="M ${LEFT} ${a} C ${reach} ${a}, ${reach} ${b}, ${LEFT} ${b}" marker-end="url(#lineage-end)"><title>step ${from} to step ${to}: ${[...kinds].join(", ")}</title></path>`,
    ];
  });
  const points = steps.map(
    (step) =>
      safeHtml`<circle cx="${LEFT}" cy="${rowOf.get(step)!}" r="4"/><text x="${LEFT + 12}" y="${rowOf.get(step)!}" dy="4">${step} ${run.steps[step]?.tool ?? ""}</text>`,
  );
  const summary = `${formatCountOf(pairs.size, "result")} fed later calls; the list below says which`;
  return safeHtml`<svg class="chart lineage-chart" viewBox="0 0 520 ${ROW * steps.length}" role="img" aria-label="${summary}"><defs><marker id="lineage-end" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M 0 0 L 8 4 L 0 8 z"/></marker></defs>${arcs}${points}</svg>`;
}
