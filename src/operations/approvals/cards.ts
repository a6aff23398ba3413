/** Cards of requests: who sees them, and what they are drawn from. */

import {
  type ApprovalDoc,
  LIVE_APPROVAL_STATUSES,
  type StoredDelegation,
} from "../../govern/approvals/approval.ts";
import { authoritiesOver, type DecidingAuthority } from "../../govern/approvals/authority.ts";
import { type CardSummary, cacheCardSummary, cachedCardSummary } from "../../govern/cards/card-cache.ts";
import { cardSubject } from "../../govern/cards/load-card-facts.ts";
import type { CardContext } from "../../govern/cards/types.ts";
import type { CardTask } from "../../govern/cards/whole-card.ts";
import { stepKey } from "../../govern/document-keys.ts";
import { isExpired } from "../../govern/expiry.ts";
import { type CallerPrincipal, hasRole, requestersOf, seesTenant } from "../../govern/roles.ts";
import { unknownRun } from "../../govern/runs/load-run.ts";
import { countedRun, type RunDoc } from "../../govern/runs/run.ts";
import { isUndoExpired } from "../../govern/runs/undo-deadlines.ts";
import { isSignatureRequired } from "../../govern/signing/draft.ts";
import { notFoundError, SvcError } from "../../kernel/errors.ts";
import { visibleLine } from "../../kernel/text/escape-invisible.ts";
import { needsMet } from "../../rules/policy/checks/approvals.ts";
import { describeProof, undoProofOf } from "../../rules/undo-proof.ts";
import type { ServiceApp } from "../app.ts";
import { proofWordsOf } from "../drills/drill-results.ts";
import { delegationsTo } from "../pipeline/access.ts";
import { JsonText } from "../pipeline/operation.ts";
import { drawCards } from "../values/threads.ts";
import type { RequestFacts, requestCard } from "./draw-cards.ts";

/** Limit on decided requests searched for similar ones, newest first. */
const LOOKED_AT = 500;
const LAST_STEPS = 3;

/** Whether the principal can see the card: an admin, or an approver whose vote counts or has counted. */
export function seesCard(
  app: ServiceApp,
  principal: CallerPrincipal,
  approval: ApprovalDoc,
  delegations: readonly StoredDelegation[],
): boolean {
  if (!seesTenant(principal, approval.tenant)) return false;
  if (hasRole(principal, "admin") || approval.votes.some(({ by }) => by === principal.name)) return true;
  return isVoteCounted(app, principal, approval, delegations);
}

/** Whether the principal's vote would count in the request now. */
export function isVoteCounted(...asked: Parameters<typeof authoritiesIn>): boolean {
  return authoritiesIn(...asked).length > 0;
}

/** Whether the principal's single vote would decide the request. */
export function decidesAlone(...asked: Parameters<typeof authoritiesIn>): boolean {
  const [, , approval] = asked;
  return authoritiesIn(...asked).some((authority) => needsMet(approval.internal.needs, [authority]));
}

function authoritiesIn(
  app: ServiceApp,
  principal: CallerPrincipal,
  approval: ApprovalDoc,
  delegations: readonly StoredDelegation[],
): DecidingAuthority[] {
  const { four_eyes } = app.core.rules().policy.approvals;
  if (four_eyes && requestersOf(approval).includes(principal.name)) return [];
  const facts = { four_eyes, now: app.core.env.now(), delegations, today: app.today };
  const found = authoritiesOver(approval, principal, facts);
  return found instanceof SvcError ? [] : found;
}

export async function loadCard(
  app: ServiceApp,
  principal: CallerPrincipal,
  id: string,
): Promise<JsonText<RequestCard>> {
  const { store } = app.core;
  const [approval, delegations] = await Promise.all([
    store.get("approvals", id),
    delegationsTo(app, principal.name),
  ]);
  if (approval === undefined || !seesCard(app, principal, approval, delegations))
    throw notFoundError(`unknown approval request ${id}`, "unknown_approval");
  const { task, facts, remember } = await loadCardTask(app, approval);
  const { summaries, answer } = await drawCards({ cards: [task], answer: { request: facts } });
  remember(summaries[0]!);
  return new JsonText(answer!);
}

export type RequestCard = ReturnType<typeof requestCard>;

/** What the card of a request is drawn from. */
export interface RequestCardTask {
  task: CardTask & Required<Pick<CardTask, "request">>;
  facts: RequestFacts;
  /** Caches the summary of the drawn card. */
  remember(summary: CardSummary): void;
}

/** Loads what the card is drawn from. The caller has checked access. */
export async function loadCardTask(app: ServiceApp, approval: ApprovalDoc): Promise<RequestCardTask> {
  const { core } = app;
  const { id } = approval;
  const [run, kept] = await Promise.all([
    core.store.get("runs", approval.run_id),
    // An expired request shows no values, even before the expiry job has ended it.
    isExpired(approval, core.env.now()) ? undefined : core.store.get("approval_values", id),
  ]);
  if (run === undefined) throw unknownRun(approval.run_id);
  const around = await surroundings(app, run, approval);
  const head = {
    approval_id: approval.id,
    status: approval.status,
    actor: visibleLine(approval.actor, 256),
    ...(approval.acting === undefined
      ? {}
      : { acting: approval.acting.map((name) => visibleLine(name, 256)) }),
    run_id: approval.run_id,
  };
  const signs = isSignatureRequired(core, approval);
  const rules = core.rules();
  const { tool, tenant, kind, step, arg_names, approvers, votes, requested_ms, expires_ms } = approval;
  return {
    task: {
      subject: cardSubject(rules, run, approval),
      stored: kept,
      request: { head, context: around },
      ...(signs && { signed: { run, approval } }),
    },
    facts: {
      approval: { tool, tenant, kind, step, arg_names, approvers, votes, requested_ms, expires_ms },
      is_live: LIVE_APPROVAL_STATUSES.has(approval.status),
      line: kept?.line,
    },
    remember: (summary) => {
      if (kept !== undefined) cacheCardSummary(rules, run, approval, summary);
    },
  };
}

/**
 * Builds and caches the card of a request, so that the decision's transaction does not have to. `signs` adds the hash
 * that a signature covers.
 */
export async function cacheCard(app: ServiceApp, id: string, signs = false): Promise<void> {
  const approval = await app.core.store.get("approvals", id);
  if (approval !== undefined) await cardSummary(app, approval, true, signs);
}

/** Short form of a card for lists. `sees`: whether the caller is allowed to see values. */
export async function cardSummary(
  { core }: ServiceApp,
  approval: ApprovalDoc,
  sees: boolean,
  signs = false,
): Promise<CardSummary> {
  const run = (await core.store.get("runs", approval.run_id)) ?? UNKNOWN_RUN;
  const rules = core.rules();
  const known = sees ? cachedCardSummary(rules, run, approval) : undefined;
  if (known !== undefined && (known.shown_hash !== undefined || !signs)) return known;
  const stored = sees ? await core.store.get("approval_values", approval.id) : undefined;
  const task = {
    subject: cardSubject(rules, run, approval),
    stored,
    ...(signs && { signed: { run, approval } }),
  };
  const { summaries } = await drawCards({ cards: [task] });
  const summary = summaries[0]!;
  if (stored !== undefined) cacheCardSummary(rules, run, approval, summary);
  return summary;
}

const UNKNOWN_RUN = { reason: null, salt: "", environment: null };

/** Without `closes` for a call, because its arguments can hold the deadline. */
async function surroundings(
  app: ServiceApp,
  run: RunDoc,
  approval: ApprovalDoc,
): Promise<Omit<CardContext, "closes"> & { closes?: string | null }> {
  const { store } = app.core;
  const [steps, decided, wayBack, trace] = await Promise.all([
    store.list("steps", { owner: run.run_id, order: "desc", limit: LAST_STEPS }),
    store.list("approvals", { tag: ["approved", "consumed", "denied"], order: "desc", limit: LOOKED_AT }),
    approval.kind === "call" ? ofCall(app, approval) : ofUndo(app, approval),
    store.get("traces", countedRun(run)),
  ]);
  const like = decided
    .map(({ doc }) => doc)
    .filter(
      (one) =>
        one.id !== approval.id &&
        one.tool === approval.tool &&
        one.actor === approval.actor &&
        one.tenant === approval.tenant &&
        one.kind === approval.kind,
    );
  const denied = like.filter(({ status }) => status === "denied").length;
  return {
    so_far: {
      calls: run.next_step,
      last: steps.map(({ doc: { step, tool, status } }) => ({ step, tool: visibleLine(tool, 256), status })),
    },
    like: { approved: like.length - denied, denied },
    ...(trace?.texts === undefined ? {} : { given: trace.texts }),
    ...wayBack,
  };
}

type Proven = Pick<CardContext, "proof" | "closes">;

async function ofCall(app: ServiceApp, { tool }: ApprovalDoc): Promise<Pick<CardContext, "proof">> {
  return { proof: await proofWordsOf(app.core, tool) };
}

/** For an undo that awaits approval: its drill result and its deadline. */
async function ofUndo({ core }: ServiceApp, { run_id, step: n }: ApprovalDoc): Promise<Proven> {
  const step = n === null ? undefined : await core.store.get("steps", stepKey(run_id, n));
  if (step === undefined) return { proof: null, closes: null };
  const drill = await core.store.get("drills", step.tool);
  const { closes_ms } = step;
  const closes = isUndoExpired(step, core.env.now()) ? "closed" : "closes";
  return {
    proof: describeProof(undoProofOf(drill, step.manifest_hash ?? "")),
    closes: closes_ms === undefined ? null : `${closes} ${new Date(closes_ms).toISOString()}`,
  };
}
