/**
 * What the Approvals pages show: what waits, each in one sentence, and the card of one request. Values come only
 * through the card, and so only to those whose vote counts.
 */
import { delegationsTo } from "../../app/door/access.ts";
import {
  cardFor,
  cardSummary,
  decidesAlone,
  type LoadedCard,
  seesCard,
  votesIn,
} from "../../app/operations/approvals/cards.ts";
import { listApprovals } from "../../app/operations/approvals.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { type ApprovalDoc, type ApprovalView, OPEN_APPROVAL } from "../../model/approval.ts";
import type { SentencePart } from "../../model/card/types.ts";
import { seesTenant } from "../../model/roles.ts";
import type { Ctx } from "../ctx.ts";

export const SORTS = {
  age: ["Age", (a: Waiting, b: Waiting) => a.requested_ms - b.requested_ms],
  risk: ["Risk", (a: Waiting, b: Waiting) => b.internal.risk_score - a.internal.risk_score],
  expiry: ["Time left", (a: Waiting, b: Waiting) => a.expires_ms - b.expires_ms],
} as const;
export type Sort = keyof typeof SORTS;

type Waiting = Pick<ApprovalDoc, "requested_ms" | "expires_ms" | "internal">;

/** One line of the list. */
export interface ApprovalLine {
  approval: ApprovalDoc;
  parts: SentencePart[];
  irreversible: boolean;
  score: number | null;
  /** Of those who may decide it together with others; null where it is decided by itself or not by this person. */
  card_hash: string | null;
}

/** The requests that a person can still decide, the oldest first. */
export async function openApprovals(ctx: Ctx): Promise<ApprovalView[]> {
  const limit = LIMITS.page_max;
  const lists = await Promise.all(
    (["pending", "escalated"] as const).map((status) => ctx.call(listApprovals, { status, limit })),
  );
  return lists.flatMap(({ approvals }) => approvals).sort((a, b) => a.requested_ms - b.requested_ms);
}

export async function requestLines(ctx: Ctx, sort: Sort, most: number) {
  const { store } = ctx.app.core;
  const open = await openApprovals(ctx);
  const docs = (await Promise.all(open.map(({ id }) => store.get("approvals", id)))).filter(
    (doc) => doc !== undefined && OPEN_APPROVAL.has(doc.status),
  ) as ApprovalDoc[];
  const delegations = await delegationsTo(ctx.app, ctx.principal.name);
  const shown = docs.sort(SORTS[sort][1]).slice(0, most);
  const lines: ApprovalLine[] = [];
  // One after the other: each may hold a megabyte of values, and all of them together are not held at once.
  for (const approval of shown) {
    const sees = seesCard(ctx.app, ctx.principal, approval, delegations);
    const summary = await cardSummary(ctx.app, approval, sees);
    const together = votesIn(ctx.app, ctx.principal, approval, delegations) && !summary.irreversible;
    lines.push({
      approval,
      // To whoever may not see the values a sentence with its places empty says less than the tool's name.
      parts: sees ? summary.parts : [{ text: `Call ${approval.tool}`, value: false }],
      irreversible: summary.irreversible,
      score: summary.score,
      card_hash: together ? summary.hash : null,
    });
  }
  return { lines, total: docs.length };
}

/** The card for whoever is logged in, or, where it is not for them, the request by its names alone. */
export interface ShownRequest {
  approval: ApprovalDoc;
  card: LoadedCard | null;
  votes: boolean;
  /** Whether this person's one vote is all that the request needs. */
  alone: boolean;
}

export async function shownRequest(ctx: Ctx, id: string): Promise<ShownRequest | null> {
  const approval = await ctx.app.core.store.get("approvals", id);
  if (approval === undefined || !seesTenant(ctx.principal, approval.tenant)) return null;
  const delegations = await delegationsTo(ctx.app, ctx.principal.name);
  const sees = seesCard(ctx.app, ctx.principal, approval, delegations);
  return {
    approval,
    card: sees ? await cardFor(ctx.app, approval) : null,
    votes: votesIn(ctx.app, ctx.principal, approval, delegations),
    alone: decidesAlone(ctx.app, ctx.principal, approval, delegations),
  };
}
