/** Meters and the arcs between dependent steps, rendered on the server. Each has a text alternative. */
import { type HtmlFragment, safeHtml } from "../html.ts";
import type { MarkTone } from "./marks.ts";

/** Bar for a share of a maximum. The text next to it gives the number. */
export function meterBar(value: number, most: number, tone: MarkTone): HtmlFragment {
  const width = Math.max(0, Math.min(1, most === 0 ? 0 : value / most)) * 100;
  return safeHtml`<svg class="meter ${tone}" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true"><rect class="track" width="100" height="6" rx="3"/><rect class="fill" width="${width.toFixed(1)}" height="6" rx="3"/></svg>`;
}

export interface ArcNode {
  step: number;
  tool: string;
  status: string;
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
        safeHtml`<path class="arc" d="M${from} 0 A${radius} ${radius * 0.7} 0 0 1 ${to} 0"><title>step ${step} needs step ${other}</title></path>`,
      );
    }
  }
  const top = Math.ceil(reach * 0.7) + 6;
  const width = 36 + (nodes.length - 1) * GAP;
  const points = nodes.map(({ step, tool, status, tone }) => {
    const x = place.get(step)!;
    return safeHtml`<a href="#step-${step}"><title>step ${step}: ${tool}, ${status}</title><circle class="node ${tone}" cx="${x}" cy="0" r="11"/><text class="node-number" x="${x}" y="4" text-anchor="middle">${step}</text></a>`;
  });
  const words =
    arcs.length === 0 ? "No step depends on another." : `${nodes.length} steps and what they depend on.`;
  return safeHtml`<svg class="arcs" viewBox="0 ${-top} ${width} ${top + 14}" width="${width}" height="${top + 14}" role="group" aria-label="${words}">${arcs}${points}</svg>`;
}
