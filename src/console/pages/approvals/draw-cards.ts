/** Draws the cards of a page from plain data, in this thread or another: of a request, or of the calls of a plan. */
import type { ApprovalDoc } from "../../../govern/approvals/approval.ts";
import { type CardSummary, summarizeCard } from "../../../govern/cards/card-cache.ts";
import type { CardTask, WholeCard } from "../../../govern/cards/whole-card.ts";
import { drawingWholeCard } from "../../../govern/cards/whole-card.ts";
import type { JsonValue } from "../../../kernel/json/json.ts";
import { isLargeValue } from "../../../kernel/json/large-value-cache.ts";
import { type PausableWork, runAtOnce } from "../../../kernel/pausable-work.ts";
import type { RequestCardTask } from "../../../operations/approvals/cards.ts";
import { type PlanFacts, plannedCards } from "../../../operations/approvals/draw-cards.ts";
import { type HtmlFragment, safeHtml } from "../../html.ts";
import { cardSections, historySection } from "./card-sections.ts";
import { callCards, closedCalls } from "./plan-calls.ts";

export interface PageDrawing {
  cards: readonly CardTask[];
  of: { request: RequestPage } | { plan: PlanPage };
}

interface RequestPage {
  /** Id of the card on the page. */
  id: string;
  kind: ApprovalDoc["kind"];
  is_open: boolean;
  is_live: boolean;
  is_signed: boolean;
}

interface PlanPage extends PlanFacts {
  /** The call that the user opened. */
  open: number;
}

/** Facts that the page needs about its cards, and their HTML. */
export interface DrawnPage<H> {
  summaries: CardSummary[];
  html: H;
  /** Hash of the card, or the one hash over the plan's cards. */
  hash: string;
  /** Arguments for forms. Null if they are not stored. */
  args: { value: JsonValue } | "large" | null;
  /** Paths of fields with amounts of money. */
  money: string[];
  /** Whether the values were deleted when the request ended. */
  is_deleted: boolean;
  /** Number of calls that do not fit on the page. */
  closed: number;
}

/** For another thread: the HTML as bytes. */
export function drawForPage(drawing: PageDrawing): DrawnPage<Uint8Array> {
  const drawn = runAtOnce(drawingPage(drawing));
  return { ...drawn, html: new TextEncoder().encode(drawn.html.toString()) };
}

export function* drawingPage({ cards, of }: PageDrawing): PausableWork<DrawnPage<HtmlFragment>> {
  const drawn: WholeCard[] = [];
  for (const task of cards) drawn.push(yield* drawingWholeCard(task));
  const summaries = drawn.map((card) => summarizeCard(card, card.shown_hash));
  yield;
  const page =
    "plan" in of
      ? planPage(of.plan, drawn)
      : requestPage(of.request, cards[0] as RequestCardTask["task"], drawn[0]!);
  return { summaries, ...page };
}

function planPage({ open, ...facts }: PlanPage, drawn: readonly WholeCard[]) {
  const plan = plannedCards(facts, drawn);
  const html = safeHtml`${callCards(plan, open)}`;
  const closed = closedCalls(plan, Number.NaN).size;
  return { html, hash: plan.card_hash!, closed, args: null, money: [], is_deleted: false };
}

function requestPage(
  { id, kind, is_open, is_live, is_signed }: RequestPage,
  { stored, request: { context } }: RequestCardTask["task"],
  { judged, hash, closes, ...card }: WholeCard,
) {
  const is_deleted = !is_open && card.arguments === null;
  const shown = { ...judged, proof: context.proof, closes, kind };
  const html = cardSections(
    is_deleted ? { ...shown, fields: [], more: [] } : shown,
    is_live ? hash : id,
    historySection(context, is_signed),
  );
  const money = judged.fields.flatMap(({ as, path }) => (as === "money" ? [path] : []));
  return { html, hash, closed: 0, args: formArguments(stored, card.arguments), money, is_deleted };
}

function formArguments(stored: CardTask["stored"], value: JsonValue): DrawnPage<HtmlFragment>["args"] {
  if (value === null) return null;
  return stored?.texts?.args !== undefined || isLargeValue(value) ? "large" : { value };
}
