/**
 * What the Approvals pages show: what waits, each in one sentence, and the card of one request. Values come only
 * through the card, and so only to those whose vote counts.
 */
import { delegationsTo } from "../../app/door/access.ts";
import {
  cardFor,
  decidesAlone,
  type LoadedCard,
  seesCard,
  votesIn,
} from "../../app/operations/approvals/cards.ts";
import { listApprovals } from "../../app/operations/approvals.ts";
import { cardFacts } from "../../engine/approvals/card-facts.ts";
import type { Json } from "../../kernel/json.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { type ApprovalDoc, type ApprovalView, OPEN_APPROVAL } from "../../model/approval.ts";
import { cardHash, judgedCard } from "../../model/card/card.ts";
import type { JudgedCard, SentencePart } from "../../model/card/types.ts";
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
  /** What the table of a group is made of; nothing of it for those who may not see the values. */
  args: Json | null;
  fields: JudgedCard["fields"];
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
  const { store } = ctx.app.core;
  const delegations = await delegationsTo(ctx.app, ctx.principal.name);
  return Promise.all(
    docs.map(async (approval): Promise<ApprovalLine> => {
      const sees = seesCard(ctx.app, ctx.principal, approval, delegations);
      const [run, values] = await Promise.all([
        store.get("runs", approval.run_id),
        sees ? store.get("approval_values", approval.id) : undefined,
      ]);
      const known = run ?? { reason: null, salt: "", environment: null };
      const facts = cardFacts(ctx.app.core.rules(), known, approval, values);
      const judged = judgedCard(facts);
      const together = votesIn(ctx.app, ctx.principal, approval, delegations) && !judged.irreversible;
      return {
        approval,
        // To whoever may not see the values a sentence with its places empty says less than the tool's name.
        parts: sees ? judged.parts : [{ text: `Call ${approval.tool}`, value: false }],
        irreversible: judged.irreversible,
        score: judged.risk?.score ?? null,
        card_hash: together ? cardHash(facts, judged) : null,
        args: sees ? (facts.values?.args ?? null) : null,
        fields: sees ? judged.fields : [],
      };
    }),
  );
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
