/**
 * Data of the Approvals pages: the pending requests, each as one sentence, and the card of one request. Argument values
 * come only from the card, so only users whose vote counts see them.
 */

import { runInSlices } from "../../../child-process/event-loop-slices.ts";
import {
  type ApprovalDoc,
  type ApprovalView,
  OPEN_APPROVAL_STATUSES,
} from "../../../govern/approvals/approval.ts";
import type { CardSummary } from "../../../govern/cards/card-cache.ts";
import { storedValue } from "../../../govern/cards/stored-values.ts";
import type { SentencePart } from "../../../govern/cards/types.ts";
import { computingVisibleArgs } from "../../../govern/cards/visible-values.ts";
import { seesTenant } from "../../../govern/roles.ts";
import { isSignatureRequired } from "../../../govern/signing/draft.ts";
import type { JsonValue } from "../../../kernel/json/json.ts";
import { JsonTextValue } from "../../../kernel/json/json-text-value.ts";
import { isLargeValue } from "../../../kernel/json/large-value-cache.ts";
import { SERVICE_LIMITS } from "../../../kernel/limits.ts";
import { visibleText } from "../../../kernel/text/escape-invisible.ts";
import { listApprovals } from "../../../operations/approvals/approvals.ts";
import {
  cardSummary,
  decidesAlone,
  isVoteCounted,
  loadCardTask,
  seesCard,
} from "../../../operations/approvals/cards.ts";
import { findApproval, findApprovalValues } from "../../../operations/documents.ts";
import { delegationsTo } from "../../../operations/pipeline/access.ts";
import type { CardTemplate } from "../../../rules/manifest/types.ts";
import type { HtmlFragment } from "../../html.ts";
import type { PageContext } from "../../page-context.ts";
import { drawPage } from "./card-thread.ts";
import type { DrawnPage } from "./draw-cards.ts";

export const APPROVAL_SORTS = {
  age: ["Age", (a: Waiting, b: Waiting) => a.requested_ms - b.requested_ms],
  risk: ["Risk", (a: Waiting, b: Waiting) => b.internal.risk_score - a.internal.risk_score],
  expiry: ["Time left", (a: Waiting, b: Waiting) => a.expires_ms - b.expires_ms],
} as const;
export type ApprovalSort = keyof typeof APPROVAL_SORTS;

type Waiting = Pick<ApprovalDoc, "requested_ms" | "expires_ms" | "internal">;

/** Request in the list. */
export interface ApprovalLine {
  approval: ApprovalDoc;
  parts: SentencePart[];
  irreversible: boolean;
  score: number | null;
  /** Card hash if this user can decide the request together with others in one form, else null. */
  card_hash: string | null;
  /** Arguments for the table of a group, or null if this user is not allowed to see the values. */
  args: JsonValue | null;
  fields: CardTemplate["fields"];
  /** Why the call needs an approval, as on its card. */
  causes: string[];
}

/** Returns the pending and escalated requests, oldest first. */
export async function openApprovals(ctx: PageContext): Promise<ApprovalView[]> {
  const limit = SERVICE_LIMITS.page_max;
  const lists = await Promise.all(
    (["pending", "escalated"] as const).map((status) => ctx.call(listApprovals, { status, limit })),
  );
  return lists.flatMap(({ approvals }) => approvals).sort((a, b) => a.requested_ms - b.requested_ms);
}

export async function requestLines(ctx: PageContext, sort: ApprovalSort, most: number) {
  const docs = await openDocs(
    ctx,
    (await openApprovals(ctx)).map(({ id }) => id),
  );
  return { lines: await linesOf(ctx, docs.sort(APPROVAL_SORTS[sort][1]).slice(0, most)), total: docs.length };
}

/** Returns the named requests that are still open and that this user is allowed to see, in the order given. */
export async function chosenLines(ctx: PageContext, ids: readonly string[]): Promise<ApprovalLine[]> {
  return linesOf(ctx, await openDocs(ctx, ids));
}

async function openDocs({ app, principal }: PageContext, ids: readonly string[]): Promise<ApprovalDoc[]> {
  const docs = await Promise.all(ids.map((id) => findApproval(app, id)));
  return docs.filter(
    (doc) => doc !== undefined && OPEN_APPROVAL_STATUSES.has(doc.status) && seesTenant(principal, doc.tenant),
  ) as ApprovalDoc[];
}

async function linesOf(ctx: PageContext, docs: readonly ApprovalDoc[]): Promise<ApprovalLine[]> {
  const delegations = await delegationsTo(ctx.app, ctx.principal.name);
  const lines: ApprovalLine[] = [];
  // One at a time: each request may hold a megabyte of values, so do not load all of them at once.
  for (const approval of docs) {
    const sees = seesCard(ctx.app, ctx.principal, approval, delegations);
    const summary = await cardSummary(ctx.app, approval, sees);
    const { args, fields, line } = await tabledArgs(ctx, approval, sees);
    // Arguments that are too large for the table are decided on the request's own card.
    const together =
      args !== "large" &&
      isVoteCounted(ctx.app, ctx.principal, approval, delegations) &&
      !summary.irreversible &&
      summary.confirm !== true &&
      !isSignatureRequired(ctx.app.core, approval);
    lines.push({
      approval,
      parts: partsOf(approval, sees, line, summary.parts),
      irreversible: summary.irreversible,
      score: summary.score,
      card_hash: together ? summary.hash : null,
      args: args === "large" ? null : args,
      fields,
      causes: sees ? (approval.internal.because?.causes ?? []).map(({ reason }) => visibleText(reason)) : [],
    });
  }
  return lines;
}

/** The line of the call, or else the sentence of its card. Without the values, the tool's name says more. */
function partsOf(
  { tool }: ApprovalDoc,
  sees: boolean,
  line: string | undefined,
  sentence: SentencePart[],
): SentencePart[] {
  if (!sees) return [{ text: `Call ${tool}`, value: false }];
  return line === undefined ? sentence : [{ text: line, value: false }];
}

/** Arguments for the table of a group: masked as on the card, or "large" if they do not fit a row. */
async function tabledArgs(
  { app }: PageContext,
  { id, tool }: ApprovalDoc,
  sees: boolean,
): Promise<{ args: JsonValue | "large" | null; fields: CardTemplate["fields"]; line?: string | undefined }> {
  const { manifests, policy } = app.core.rules();
  const manifest = manifests.active(tool) ?? null;
  const fields = sees ? (manifest?.card?.fields ?? []) : [];
  const values =
    sees && policy.approvals.show === "arguments" ? await findApprovalValues(app, id) : undefined;
  if (values === undefined) return { args: null, fields };
  const { line } = values;
  const args = storedValue(values, "args") ?? null;
  if (args instanceof JsonTextValue || isLargeValue(args)) return { args: "large", fields, line };
  return { args: await runInSlices(computingVisibleArgs(args, manifest)), fields, line };
}

/** A drawn card. */
export interface ShownCard
  extends Pick<CardSummary, "parts" | "irreversible" | "confirm">,
    Pick<DrawnPage<HtmlFragment>, "args" | "money" | "is_deleted"> {
  sections: HtmlFragment;
  card_hash: string | null;
}

/** Request as this user sees it. `card` is null if the user is not allowed to see the values. */
export interface ShownRequest {
  approval: ApprovalDoc;
  card: ShownCard | null;
  votes: boolean;
  /** Whether this user's vote alone decides the request. */
  alone: boolean;
}

export async function shownRequest(ctx: PageContext, id: string): Promise<ShownRequest | null> {
  const approval = await findApproval(ctx.app, id);
  if (approval === undefined || !seesTenant(ctx.principal, approval.tenant)) return null;
  const delegations = await delegationsTo(ctx.app, ctx.principal.name);
  const sees = seesCard(ctx.app, ctx.principal, approval, delegations);
  return {
    approval,
    card: sees ? await shownCard(ctx, approval) : null,
    votes: isVoteCounted(ctx.app, ctx.principal, approval, delegations),
    alone: decidesAlone(ctx.app, ctx.principal, approval, delegations),
  };
}

/** A decided card gets another id, so that the live script marks an open one in which the user is typing. */
export const cardId = ({ id, status }: ApprovalDoc): string =>
  OPEN_APPROVAL_STATUSES.has(status) ? id : `${id}-ended`;

async function shownCard({ app, embedded }: PageContext, approval: ApprovalDoc): Promise<ShownCard> {
  const { task, facts, remember } = await loadCardTask(app, approval);
  const request = {
    id: cardId(approval),
    kind: approval.kind,
    is_open: OPEN_APPROVAL_STATUSES.has(approval.status),
    is_live: facts.is_live,
    is_signed: isSignatureRequired(app.core, approval),
  };
  const { summaries, html, hash, ...drawn } = await drawPage({ cards: [task], of: { request } }, embedded);
  const summary = summaries[0]!;
  remember(summary);
  const { parts, irreversible, confirm } = summary;
  return { ...drawn, parts, irreversible, confirm, sections: html, card_hash: facts.is_live ? hash : null };
}
