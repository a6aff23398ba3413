/** Draws the cards of a plan's calls, and the one hash over them. */
import type { ApprovalDoc } from "../../govern/approvals/approval.ts";
import { cacheCardSummary, cachedCardSummary, summarizeCard } from "../../govern/cards/card-cache.ts";
import { cardSubject } from "../../govern/cards/load-card-facts.ts";
import type { CardTask } from "../../govern/cards/whole-card.ts";
import { planHash } from "../../govern/plans/decide-plan.ts";
import type { PlanDoc } from "../../govern/plans/plan.ts";
import type { RunDoc } from "../../govern/runs/run.ts";
import type { ServiceApp } from "../app.ts";
import { type DrawnCard, drawCards } from "../values/threads.ts";

/** `proofOf` gives each tool's words on its undo, for whole cards. Without it, only the hash is complete. */
export async function drawPlan(
  { core }: ServiceApp,
  run: RunDoc,
  { internal: { requests } }: PlanDoc,
  proofOf?: (tool: string) => Promise<string | null>,
): Promise<{ cards: DrawnCard[]; card_hash: string }> {
  const rules = core.rules();
  const stored = await Promise.all(requests.map(({ id }) => core.store.get("approval_values", id)));
  const tasks: CardTask[] = [];
  for (const [i, request] of requests.entries())
    tasks.push({
      subject: cardSubject(rules, run, request),
      stored: stored[i],
      ...(proofOf && { planned: { proof: await proofOf(request.tool) } }),
    });
  const cards = await drawCards(tasks);
  for (const [i, card] of cards.entries())
    if (stored[i] !== undefined) cacheCardSummary(rules, run, requests[i]!, summarizeCard(card));
  return { cards, card_hash: planHash(run, cards) };
}

/** Draws and caches the cards of a plan, so that the decision's transaction does not have to. */
export async function cachePlanCards(app: ServiceApp, plan: PlanDoc): Promise<void> {
  const { core } = app;
  const run = await core.store.get("runs", plan.run_id);
  if (run === undefined) return;
  const isKnown = (request: ApprovalDoc) => cachedCardSummary(core.rules(), run, request) !== undefined;
  if (!plan.internal.requests.every(isKnown)) await drawPlan(app, run, plan);
}
