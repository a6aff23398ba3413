/** Cards of a plan's calls, and the one hash over them. */
import type { ApprovalDoc } from "../../govern/approvals/approval.ts";
import { type CardSummary, cacheCardSummary, cachedCardSummary } from "../../govern/cards/card-cache.ts";
import { cardSubject } from "../../govern/cards/load-card-facts.ts";
import type { CardTask } from "../../govern/cards/whole-card.ts";
import { planHash } from "../../govern/plans/decide-plan.ts";
import type { PlanDoc } from "../../govern/plans/plan.ts";
import type { RunDoc } from "../../govern/runs/run.ts";
import type { ServiceApp } from "../app.ts";
import { drawCards } from "../values/threads.ts";

/** What the cards of a plan are drawn from. */
export interface PlanCardTasks {
  cards: CardTask[];
  /** Caches the summaries of the drawn cards. */
  remember(summaries: readonly CardSummary[]): void;
}

/** `proofOf` gives each tool's words on its undo, for whole cards. Without it, only the summaries are complete. */
export async function loadPlanCards(
  { core }: ServiceApp,
  run: RunDoc,
  { internal: { requests } }: PlanDoc,
  proofOf?: (tool: string) => Promise<string | null>,
): Promise<PlanCardTasks> {
  const rules = core.rules();
  const stored = await Promise.all(requests.map(({ id }) => core.store.get("approval_values", id)));
  const cards: CardTask[] = [];
  for (const [i, request] of requests.entries())
    cards.push({
      subject: cardSubject(rules, run, request),
      stored: stored[i],
      ...(proofOf && { planned: { proof: await proofOf(request.tool) } }),
    });
  const remember: PlanCardTasks["remember"] = (summaries) => {
    for (const [i, summary] of summaries.entries())
      if (stored[i] !== undefined) cacheCardSummary(rules, run, requests[i]!, summary);
  };
  return { cards, remember };
}

/** Draws and caches the cards of a plan, and returns the one hash over them. */
export async function planCardHash(app: ServiceApp, run: RunDoc, plan: PlanDoc): Promise<string> {
  const { cards, remember } = await loadPlanCards(app, run, plan);
  const { summaries } = await drawCards({ cards });
  remember(summaries);
  return planHash(run, summaries);
}

/** Draws and caches the cards of a plan, so that the decision's transaction does not have to. */
export async function cachePlanCards(app: ServiceApp, plan: PlanDoc): Promise<void> {
  const { core } = app;
  const run = await core.store.get("runs", plan.run_id);
  if (run === undefined) return;
  const isKnown = (request: ApprovalDoc) => cachedCardSummary(core.rules(), run, request) !== undefined;
  if (!plan.internal.requests.every(isKnown)) await planCardHash(app, run, plan);
}
