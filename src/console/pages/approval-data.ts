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
import type { Json } from "../../kernel/json.ts";
import { isLargeValue } from "../../kernel/large-values.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { type ApprovalDoc, type ApprovalView, OPEN_APPROVAL } from "../../model/approval.ts";
import { keepingArgs } from "../../model/card/kept.ts";
import type { CardTemplate } from "../../model/card/template.ts";
import type { SentencePart } from "../../model/card/types.ts";
import { seesTenant } from "../../model/roles.ts";
import { doInTurns } from "../../process/turns.ts";
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
  /** What the table of a group is made of; nothing of it for those who may not see the values. */
  args: Json | null;
  fields: CardTemplate["fields"];
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
  const docs = await openDocs(
    ctx,
    (await openApprovals(ctx)).map(({ id }) => id),
  );
  return { lines: await linesOf(ctx, docs.sort(SORTS[sort][1]).slice(0, most)), total: docs.length };
}

/** Those of the named requests that a person can still decide and this one may see, in their order. */
export async function chosenLines(ctx: Ctx, ids: readonly string[]): Promise<ApprovalLine[]> {
  return linesOf(ctx, await openDocs(ctx, ids));
}

async function openDocs({ app, principal }: Ctx, ids: readonly string[]): Promise<ApprovalDoc[]> {
  const docs = await Promise.all(ids.map((id) => app.core.store.get("approvals", id)));
  return docs.filter(
    (doc) => doc !== undefined && OPEN_APPROVAL.has(doc.status) && seesTenant(principal, doc.tenant),
  ) as ApprovalDoc[];
}

async function linesOf(ctx: Ctx, docs: readonly ApprovalDoc[]): Promise<ApprovalLine[]> {
  const delegations = await delegationsTo(ctx.app, ctx.principal.name);
  const lines: ApprovalLine[] = [];
  // One after the other: each may hold a megabyte of values, and all of them together are not held at once.
  for (const approval of docs) {
    const sees = seesCard(ctx.app, ctx.principal, approval, delegations);
    const summary = await cardSummary(ctx.app, approval, sees);
    const { args, fields } = await tabledArgs(ctx, approval, sees);
    // A request that the table of its group cannot show is decided on its own card.
    const together =
      args !== "large" && votesIn(ctx.app, ctx.principal, approval, delegations) && !summary.irreversible;
    lines.push({
      approval,
      // To whoever may not see the values a sentence with its places empty says less than the tool's name.
      parts: sees ? summary.parts : [{ text: `Call ${approval.tool}`, value: false }],
      irreversible: summary.irreversible,
      score: summary.score,
      card_hash: together ? summary.hash : null,
      args: args === "large" ? null : args,
      fields,
    });
  }
  return lines;
}

/** The arguments that a table of several requests shows: masked as on the card, and none that are too large for a row. */
async function tabledArgs(
  { app }: Ctx,
  { id, tool }: ApprovalDoc,
  sees: boolean,
): Promise<{ args: Json | "large" | null; fields: CardTemplate["fields"] }> {
  const { manifests, policy } = app.core.rules();
  const manifest = manifests.active(tool) ?? null;
  const fields = sees ? (manifest?.card?.fields ?? []) : [];
  const values =
    sees && policy.approvals.show === "arguments"
      ? await app.core.store.get("approval_values", id)
      : undefined;
  if (values === undefined) return { args: null, fields };
  if (isLargeValue(values.args)) return { args: "large", fields };
  return { args: await doInTurns(keepingArgs(values.args, manifest)), fields };
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
