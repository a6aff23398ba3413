/** Approvals: listing, waiting for, deciding, breaking glass, and approving ahead. */
import * as z from "zod";
import {
  breakGlassUnit,
  type DecideResult,
  decideUnit,
  withdrawUnit,
} from "../../engine/approvals/decide-request.ts";
import { learningOffer } from "../../engine/approvals/offer.ts";
import { preApproveUnit } from "../../engine/approvals/pre-approve.ts";
import { learningCall } from "../../engine/learn-values.ts";
import { tryDuration } from "../../kernel/duration.ts";
import { forbidden, notFound } from "../../kernel/errors.ts";
import type { Json } from "../../kernel/json.ts";
import { isLargeValue } from "../../kernel/large-values.ts";
import { LIMITS } from "../../kernel/limits.ts";
import {
  APPROVAL_STATUSES,
  type ApprovalDoc,
  type ApprovalView,
  approvalView,
  everyTag,
} from "../../model/approval.ts";
import { hasRole, seesTenant } from "../../model/roles.ts";
import { doAnyInTurns, doInTurns } from "../../process/turns.ts";
import { type App, announce } from "../app.ts";
import { inDigest } from "../background/flood-digest.ts";
import { delegationsTo, requireRole } from "../door/access.ts";
import { type Caller, operation } from "../door/operation.ts";
import { awaitDecision } from "./approvals/await-decision.ts";
import { cardShape } from "./approvals/card-shape.ts";
import { learnCard, loadCard } from "./approvals/cards.ts";
import { type OfferView, offerOn } from "./approvals/offers.ts";
import { cutPage, positionOf } from "./cursor.ts";
import { anyJson, approvalViewShape, givenId, note, paging, runId, tool } from "./schemas.ts";

const approval_id = givenId("apr_<uuid>");
const approvalWithOffer = approvalViewShape.extend({
  offer: z
    .strictObject({ approval_id: z.string(), args: z.unknown() })
    .optional()
    .meta({ description: "what was offered in place of the denied call" }),
});
const seconds = z.int().min(0).max(LIMITS.approval_wait_s, `at most ${LIMITS.approval_wait_s} seconds`);

export const listApprovals = operation({
  id: "list_approvals",
  summary: "List approval requests, newest first",
  role: "auditor",
  within_tenant: true,
  input: z.strictObject({
    status: z.enum(APPROVAL_STATUSES).optional(),
    run_id: z.string().optional(),
    ...paging,
  }),
  output: z.strictObject({
    approvals: z.array(approvalViewShape),
    next_cursor: z.string().optional(),
    flooded: z
      .array(z.string())
      .optional()
      .meta({ description: "actors on this page whose open requests are past `approvals.flood`" }),
  }),
  async run({ app }, { run_id, status, cursor, ...page_of }) {
    const limit = page_of.limit ?? LIMITS.page_default;
    const rows = await app.core.store.list("approvals", {
      owner: run_id,
      tag: status && everyTag([status]),
      order: "desc",
      limit: limit + 1,
      after: positionOf(cursor),
    });
    const { page, next } = cutPage(rows, limit);
    const approvals = page.map((row) => approvalView(row.doc));
    const past = page.flatMap(({ doc }) => (inDigest(doc) ? [doc.actor] : []));
    return {
      approvals,
      ...(next === null ? {} : { next_cursor: next }),
      ...(past.length === 0 ? {} : { flooded: [...new Set(past)] }),
    };
  },
});

export const getApproval = operation({
  id: "get_approval",
  summary: "Read a request; with `wait`, answer as soon as it is decided",
  role: "auditor",
  within_tenant: true,
  any_role: true,
  input: z.strictObject({ approval_id, wait: seconds.optional() }),
  waits: true,
  output: approvalWithOffer,
  errors: { not_found: "unknown request, or one of another agent's run" },
  async run(caller, { approval_id, wait: wait_s = 0 }) {
    const { app, signal, principal: who } = caller;
    const approval = await awaitDecision(app, { id: approval_id, wait_s, signal, who }, async (found) => {
      const principal = wait_s === 0 ? caller.principal : ((await caller.again?.()) ?? caller.principal);
      const mine = hasRole(principal, "auditor") || found.internal.principal === principal.id;
      return mine && seesTenant(principal, found.tenant);
    });
    return withOffer(caller, approval);
  },
});

/** The request, and what was offered in its place to those who may see it. */
export async function withOffer(
  { app, principal }: Pick<Caller, "app" | "principal">,
  approval: ApprovalDoc,
): Promise<ApprovalView & { offer?: OfferView }> {
  const offer = await offerOn(app, principal, approval);
  return offer === undefined ? approvalView(approval) : { ...approvalView(approval), offer };
}

interface DecisionGiven {
  decision: "approve" | "deny";
  note?: string | undefined;
  card_hash?: string | undefined;
  group_of?: number | undefined;
  offer?: { args: Json } | undefined;
}

export async function decideRequest(
  { app, principal }: Pick<Caller, "app" | "principal">,
  id: string,
  { offer, ...given }: DecisionGiven,
) {
  const delegations = await delegationsTo(app, principal.name);
  if (delegations.length === 0) requireRole(principal, "approver");
  if (given.card_hash !== undefined) await learnCard(app, id);
  if (offer !== undefined) await learnOffer(app, id, offer.args);
  const result = await app.core.store.transact(
    decideUnit(
      app.core,
      principal,
      id,
      {
        ...given,
        note: given.note ?? null,
        ...(offer === undefined ? {} : { offer: { id: `apr_${app.core.env.uuid()}`, args: offer.args } }),
      },
      delegations,
    ),
  );
  const decided = told(app, result);
  // An offer that needs more than its giver's vote is a question to the others.
  if (result.offered?.status === "pending") app.core.listeners.approvalRequested(result.offered);
  return decided;
}

async function learnOffer({ core }: App, id: string, args: Json): Promise<void> {
  const approval = await core.store.get("approvals", id);
  if (approval === undefined || !isLargeValue(args)) return;
  await doAnyInTurns(learningCall(core, approval.tool, args));
  await doInTurns(learningOffer(args));
}

function told(app: App, result: DecideResult) {
  announce(app.core.listeners, result.records);
  if (result.refused !== null) throw result.refused;
  return approvalView(result.approval);
}

/** Of a card as it was shown to whoever decides. */
export const shownCardHash = z
  .string()
  .regex(/^sha256:[0-9a-f]{64}$/, "must be the card_hash of the request's card")
  .meta({ description: "the decision holds only if the request's card still has this hash" });

export const getCard = operation({
  id: "get_card",
  summary: "Read a request's card: what a person judges it by",
  role: "approver",
  any_role: true,
  within_tenant: true,
  input: z.strictObject({ approval_id }),
  output: cardShape,
  errors: { not_found: "unknown request, or one that is not yours to decide" },
  run: ({ app, principal }, { approval_id }) => loadCard(app, principal, approval_id),
});

const decisionInput = z.strictObject({
  approval_id,
  note: note.optional(),
  card_hash: shownCardHash.optional(),
  group_of: z
    .int()
    .min(1)
    .max(LIMITS.page_max)
    .optional()
    .meta({ description: "how many were decided together; the card counts as not opened" }),
});
const decisionErrors = { not_found: "unknown request", conflict: "already decided, or the card has changed" };

export const approve = operation({
  id: "approve",
  summary: "Approve a request",
  role: "approver",
  role_or_delegate: true,
  within_tenant: true,
  input: decisionInput,
  output: approvalViewShape,
  errors: decisionErrors,
  run: (caller, { approval_id, ...given }) =>
    decideRequest(caller, approval_id, { decision: "approve", ...given }),
});

export const deny = operation({
  id: "deny",
  summary: "Deny a request; with `offer`, approve other arguments of the same tool in its place",
  role: "approver",
  role_or_delegate: true,
  within_tenant: true,
  input: decisionInput.extend({ offer: z.strictObject({ args: anyJson }).optional() }),
  output: approvalWithOffer,
  errors: decisionErrors,
  async run(caller, { approval_id, offer, ...given }) {
    const decision = {
      decision: "deny" as const,
      ...given,
      ...(offer && { offer: { args: offer.args as Json } }),
    };
    const decided = await decideRequest(caller, approval_id, decision);
    if (offer === undefined) return decided;
    const { app } = caller;
    return withOffer(caller, (await app.core.store.get("approvals", approval_id))!);
  },
});

export const withdraw = operation({
  id: "withdraw",
  summary: "Take back one's own request while it is open",
  role: "agent",
  any_role: true,
  within_tenant: true,
  input: z.strictObject({ approval_id }),
  output: approvalViewShape,
  errors: { not_found: "unknown request, or one of another agent's run", conflict: "it has ended" },
  async run({ app, principal }, { approval_id }) {
    const found = await app.core.store.get("approvals", approval_id);
    const own = found?.internal.principal === principal.id;
    const hidden = !own && !hasRole(principal, "auditor");
    if (found === undefined || hidden || !seesTenant(principal, found.tenant))
      throw notFound(`unknown approval request ${approval_id}`, "unknown_approval");
    if (!own) throw forbidden("only the principal that asked may withdraw the request", "run_owner_only");
    return told(app, await app.core.store.transact(withdrawUnit(app.core, principal, approval_id)));
  },
});

export const breakGlass = operation({
  id: "break_glass",
  summary: "Approve alone, past quorum and groups; raises an alert",
  role: "admin",
  within_tenant: true,
  input: z.strictObject({
    approval_id,
    reason: z
      .string()
      .max(LIMITS.note_chars)
      .refine(
        (value) => value.trim().length >= LIMITS.break_glass_reason_chars,
        `at least ${LIMITS.break_glass_reason_chars} characters`,
      ),
  }),
  output: approvalViewShape,
  errors: { not_found: "unknown request", conflict: "already decided" },
  async run({ app, principal }, { approval_id, reason }) {
    return told(app, await app.core.store.transact(breakGlassUnit(app.core, principal, approval_id, reason)));
  },
});

export const preApprove = operation({
  id: "pre_approve",
  summary: "Approve a call before it is asked for",
  role: "approver",
  input: z.strictObject({
    run_id: runId,
    tool,
    args: anyJson,
    note: note.optional(),
    ttl: z
      .string()
      .refine((value) => (tryDuration(value) ?? 0) > 0, "must be a duration such as 4h")
      .optional(),
  }),
  output: approvalViewShape,
  errors: { not_found: "unknown run" },
  run_of: ({ run_id }) => run_id,
  async run({ app, principal }, { run_id, ...body }) {
    const input = {
      tool: body.tool,
      args: body.args as Json,
      note: body.note ?? null,
      ttl_ms: body.ttl === undefined ? null : tryDuration(body.ttl)!,
    };
    await doAnyInTurns(learningCall(app.core, input.tool, input.args));
    return told(app, await app.core.store.transact(preApproveUnit(app.core, principal, run_id, input)));
  },
});
