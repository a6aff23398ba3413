/**
 * Draws cards from plain data, and writes the answer that shows them: the card of a request, or a plan with the cards of
 * its calls. Runs in this thread or another. A large answer leaves the thread as finished text, so that the event loop
 * builds none of its objects.
 */
import type { ApprovalDoc } from "../../govern/approvals/approval.ts";
import { type CardSummary, summarizeCard } from "../../govern/cards/card-cache.ts";
import type { CardContent, CardContext } from "../../govern/cards/types.ts";
import { type CardTask, drawingWholeCard, type WholeCard } from "../../govern/cards/whole-card.ts";
import { planHash } from "../../govern/plans/decide-plan.ts";
import type { PlanView } from "../../govern/plans/plan.ts";
import { shownCardContent } from "../../govern/signing/shown.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import type { PausableWork } from "../../kernel/pausable-work.ts";

export interface CardDrawing {
  cards: readonly CardTask[];
  /** The answer to write. Without it, the summaries suffice. */
  answer?: { request: RequestFacts } | { plan: PlanFacts };
}

/** The parts of a request's card that are not drawn. */
export interface RequestFacts {
  approval: Pick<
    ApprovalDoc,
    "tool" | "tenant" | "kind" | "step" | "arg_names" | "approvers" | "votes" | "requested_ms" | "expires_ms"
  >;
  is_live: boolean;
  line?: string | undefined;
}

/** `sees`: for each call, whether the reader can see its values. */
export interface PlanFacts {
  view: PlanView;
  sees: readonly boolean[];
  salt: string;
}

export interface DrawnCards {
  summaries: CardSummary[];
  /** The answer as JSON in UTF-8. */
  answer?: Uint8Array;
}

export function* drawingCards({ cards, answer }: CardDrawing): PausableWork<DrawnCards> {
  const drawn: WholeCard[] = [];
  for (const task of cards) drawn.push(yield* drawingWholeCard(task));
  const summaries = drawn.map((card) => summarizeCard(card, card.shown_hash));
  if (answer === undefined) return { summaries };
  yield;
  const written =
    "plan" in answer ? plannedCards(answer.plan, drawn) : requestCard(answer.request, cards[0]!, drawn[0]!);
  return { summaries, answer: new TextEncoder().encode(JSON.stringify(written)) };
}

/** The complete card of a request: the hashed content and its context. */
export function requestCard(
  { approval, is_live, line }: RequestFacts,
  { request, signed }: CardTask,
  { judged, hash, shown_hash, closes, text, ...values }: WholeCard,
) {
  const { head, context } = request!;
  const { tool, tenant, kind, step, arg_names, approvers, votes, requested_ms, expires_ms } = approval;
  return {
    ...head,
    tool,
    tenant,
    kind,
    step,
    ...judged,
    arg_names,
    arguments: values.arguments,
    before: values.before,
    ...context,
    closes,
    approvers,
    votes,
    requested_ms,
    expires_ms,
    ...(line === undefined ? {} : { line }),
    card_hash: is_live ? hash : null,
    ...(is_live && signed !== undefined && shown_hash !== undefined
      ? { shown: { ...shownCardContent(signed.run, signed.approval, judged), hash: shown_hash } }
      : {}),
    text,
  };
}

/** A plan with its cards for an approver. A null card belongs to a call that other approvers decide. */
export interface ShownPlan extends PlanView {
  cards?: (PlannedCard | null)[];
  card_hash?: string;
}

export interface PlannedCard extends CardContent, Pick<CardContext, "proof" | "closes"> {
  tool: string;
  arguments: JsonValue;
  text: string;
}

export function plannedCards({ view, sees, salt }: PlanFacts, drawn: readonly WholeCard[]): ShownPlan {
  const cards = drawn.map((card, i) => (sees[i] ? plannedCard(view.calls[i]!.tool, card) : null));
  return { ...view, cards, card_hash: planHash({ salt }, drawn) };
}

function plannedCard(tool: string, drawn: WholeCard): PlannedCard {
  const { judged, proof, closes, text } = drawn;
  return { tool, ...judged, arguments: drawn.arguments, proof, closes, text };
}
