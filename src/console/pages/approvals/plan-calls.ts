/** Calls of a plan, each with its card. Those that do not fit on the page are listed with a link that opens them. */
import { ENGINE_ACTOR } from "../../../govern/core.ts";
import type { PlanView } from "../../../govern/plans/plan.ts";
import { emptyHtml, type HtmlFragment, safeHtml } from "../../html.ts";
import { bulletList, cardBlock } from "../../parts/blocks.ts";
import { formatCountOf, rulingMark } from "../../parts/marks.ts";
import { cardSections, type JudgedCall, sentenceHtml } from "./card-sections.ts";

export const PLANS_PATH = "/console/plans";

/** A plan with its cards: null for a call whose values this user is not allowed to see. */
export interface DrawnPlan extends PlanView {
  cards?: readonly (JudgedCall | null)[];
  card_hash?: string;
}

/** Maximum number of card lines on a page. The user opens the remaining calls one by one. */
const MAX_DRAWN = 4_000;
const LINE_CHARS = 200;

/** `open` is the call that the user opened. */
export function callCards(shown: DrawnPlan, open: number): HtmlFragment[] {
  const closed = closedCalls(shown, open);
  return shown.calls.map((_, i) => (closed.has(i) ? closedCard(shown, i) : callCard(shown, i)));
}

/** Indexes of calls that do not fit on the page. The call named by `open` always fits. */
export function closedCalls(shown: DrawnPlan, open: number): ReadonlySet<number> {
  const cost = (i: number): number => drawnLines(shown.cards?.[i] ?? null);
  const closed = new Set<number>();
  let left = MAX_DRAWN - (shown.calls[open] === undefined ? 0 : cost(open));
  for (const i of shown.calls.keys()) {
    if (i === open) continue;
    left -= cost(i);
    if (left < 0) closed.add(i);
  }
  return closed;
}

function drawnLines(judged: NonNullable<DrawnPlan["cards"]>[number]): number {
  if (judged === null) return 1;
  const fields = [...judged.fields, ...judged.more, ...judged.changes];
  const linesOf = (one: { lines?: readonly unknown[]; text?: string }) =>
    one.lines?.length ?? linesIn(one.text ?? "");
  return fields.reduce((sum, one) => sum + 1 + linesOf(one), 1);
}

/** Number of lines that a text takes on the page, with long lines wrapped. */
function linesIn(text: string): number {
  let lines = Math.ceil(text.length / LINE_CHARS);
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines++;
  return lines;
}

/** Short card for a call that does not fit on the page, with a link that opens it. */
function closedCard(shown: DrawnPlan, i: number): HtmlFragment {
  const { tool, decision } = shown.calls[i]!;
  const judged = shown.cards?.[i];
  const to = `${PLANS_PATH}/${shown.id}?open=${i}#call-${i}`;
  return cardBlock(
    { title: `${i + 1}. ${tool}`, id: `call-${i}`, aside: rulingMark(decision) },
    judged ? safeHtml`<p>${sentenceHtml(judged.parts)}</p>` : emptyHtml,
    safeHtml`<p><a href="${to}">Show this call</a> <span class="soft">${formatCountOf(drawnLines(judged ?? null), "line")}</span></p>`,
  );
}

export const isDeniedAtOnce = ({ status, decided_by }: PlanView): boolean =>
  status === "denied" && decided_by === ENGINE_ACTOR;

function callCard(shown: DrawnPlan, i: number): HtmlFragment {
  const call = shown.calls[i]!;
  const judged = shown.cards?.[i] ?? null;
  return cardBlock(
    { title: `${i + 1}. ${call.tool}`, id: `call-${i}`, aside: rulingMark(call.decision) },
    judged === null
      ? safeHtml`<p class="chips">${call.arg_names.map((name) => safeHtml`<code class="chip">${name}</code> `)}</p>${isDeniedAtOnce(shown) ? emptyHtml : safeHtml`<p class="soft">Only users who can decide this call see the values.</p>`}`
      : safeHtml`<div class="judged"><p>${sentenceHtml(judged.parts)}</p>${cardSections(judged, `${shown.card_hash ?? shown.id}-${i}`)}</div>`,
    judged === null ? safeHtml`<p class="soft">${call.reason}</p>` : emptyHtml,
    // The card already shows the risk and the reason for approval.
    judged === null || call.decision === "block" ? bulletList(call.reasons, "reasons") : emptyHtml,
    judged?.risk ? emptyHtml : safeHtml`<p class="soft">risk ${call.risk_score}</p>`,
    call.depends_on.length === 0
      ? emptyHtml
      : safeHtml`<p class="soft">after call ${call.depends_on.map((n) => n + 1).join(", ")}</p>`,
  );
}
