/** Approval requests: list, wait, decide, break glass, and approve a call in advance. */
import * as z from "zod";
import {
  APPROVAL_STATUSES,
  type ApprovalDoc,
  type ApprovalView,
  approvalTags,
  approvalView,
  approvalViewShape,
} from "../../govern/approvals/approval.ts";
import {
  breakGlassUnit,
  type DecideResult,
  decideUnit,
  withdrawUnit,
} from "../../govern/approvals/decide-request.ts";
import { preApproveUnit } from "../../govern/approvals/pre-approve.ts";
import { type CallerPrincipal, hasRole, seesTenant } from "../../govern/roles.ts";
import { type GivenSignature, signatureSchema } from "../../govern/signing/payload.ts";
import { tryDuration } from "../../kernel/duration.ts";
import { forbiddenError, invalidError, notFoundError } from "../../kernel/errors.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { announceRecords, type ServiceApp } from "../app.ts";
import { inDigest } from "../background/approval-digest.ts";
import { cutPage, positionOf } from "../cursor.ts";
import { delegationsTo, requireRole } from "../pipeline/access.ts";
import { type ApiCaller, defineOperation } from "../pipeline/operation.ts";
import { anyJson, givenId, noteSchema, pagingFields, runId, toolSchema } from "../schemas.ts";
import { checkGiven, withSigningLink } from "../signing/check-signature.ts";
import { precomputeCall } from "../values/threads.ts";
import { awaitDecision } from "./await-decision.ts";
import { cardShape } from "./card-shape.ts";
import { cacheCard, loadCard } from "./cards.ts";
import { type OfferView, offerForRequest } from "./counter-proposals.ts";

const approval_id = givenId("apr_<uuid>");
const approvalWithOffer = approvalViewShape.extend({
  offer: z
    .strictObject({ approval_id: z.string(), args: z.unknown() })
    .optional()
    .meta({ description: "the counter-proposal for the denied call" }),
});
const seconds = z
  .int()
  .min(0)
  .max(SERVICE_LIMITS.approval_wait_s, `at most ${SERVICE_LIMITS.approval_wait_s} seconds`);

export const listApprovals = defineOperation({
  id: "list_approvals",
  summary: "List approval requests, newest first",
  role: "auditor",
  within_tenant: true,
  input: z.strictObject({
    status: z.enum(APPROVAL_STATUSES).optional(),
    run_id: z.string().optional(),
    ...pagingFields,
  }),
  output: z.strictObject({
    approvals: z.array(approvalViewShape),
    next_cursor: z.string().optional(),
    flooded: z
      .array(z.string())
      .optional()
      .meta({ description: "actors on this page with more open requests than `approvals.flood` allows" }),
  }),
  async run({ app }, { run_id, status, cursor, ...page_of }) {
    const limit = page_of.limit ?? SERVICE_LIMITS.page_default;
    const rows = await app.core.store.list("approvals", {
      owner: run_id,
      tag: status && approvalTags([status]),
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

export const getApproval = defineOperation({
  id: "get_approval",
  summary: "Read a request; with `wait`, respond as soon as it is decided",
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

/** Adds the counter-proposal to a request, if the caller is allowed to see it. */
export async function withOffer(
  { app, principal }: Pick<ApiCaller, "app" | "principal">,
  approval: ApprovalDoc,
): Promise<ApprovalView & { offer?: OfferView }> {
  const offer = await offerForRequest(app, principal, approval);
  return offer === undefined ? approvalView(approval) : { ...approvalView(approval), offer };
}

interface DecisionGiven {
  decision: "approve" | "deny";
  note?: string | undefined;
  card_hash?: string | undefined;
  group_of?: number | undefined;
  offer?: { args: JsonValue } | undefined;
  signature?: GivenSignature | undefined;
}

export function decideRequest(
  caller: Pick<ApiCaller, "app" | "principal">,
  id: string,
  given: DecisionGiven,
): Promise<ApprovalView> {
  return withSigningLink(caller.app, `approvals/${id}`, () => decideOnce(caller, id, given));
}

async function decideOnce(
  { app, principal }: Pick<ApiCaller, "app" | "principal">,
  id: string,
  { offer, ...given }: DecisionGiven,
): Promise<ApprovalView> {
  const delegations = await delegationsTo(app, principal.name);
  if (delegations.length === 0) requireRole(principal, "approver");
  const signs = given.signature !== undefined;
  if (given.card_hash !== undefined || signs) await cacheCard(app, id, signs);
  if (offer !== undefined) await learnOffer(app, id, offer.args);
  const signature = await checkGiven(app, principal, given.signature);
  if (signature !== undefined && given.decision === "deny" && offer === undefined)
    throw invalidError("signature: a denial needs none");
  const offered = offer && { id: signature?.payload.id ?? `apr_${app.core.env.uuid()}`, args: offer.args };
  const input = { ...given, note: given.note ?? null, signature, ...(offered && { offer: offered }) };
  const result = await app.core.store.transact(decideUnit(app.core, principal, id, input, delegations));
  const decided = told(app, result);
  // If an offer needs further votes, the other approvers are notified.
  if (result.offered?.status === "pending") app.core.listeners.approvalRequested(result.offered);
  return decided;
}

async function learnOffer({ core }: ServiceApp, id: string, args: JsonValue): Promise<void> {
  const approval = await core.store.get("approvals", id);
  if (approval !== undefined) await precomputeCall(core, { tool: approval.tool, args, is_offer: true });
}

function told(app: ServiceApp, result: DecideResult) {
  announceRecords(app.core.listeners, result.records);
  if (result.refused !== null) throw result.refused;
  return approvalView(result.approval);
}

/** Hash of the card as the approver saw it. */
export const shownCardHash = z
  .string()
  .regex(/^sha256:[0-9a-f]{64}$/, "must be the card_hash of the request's card")
  .meta({ description: "the decision holds only if the request's card still has this hash" });

export const getCard = defineOperation({
  id: "get_card",
  summary: "Read a request's card, the basis of the approver's decision",
  role: "approver",
  any_role: true,
  within_tenant: true,
  input: z.strictObject({ approval_id }),
  output: { text_of: cardShape },
  errors: { not_found: "unknown request, or one that you cannot decide" },
  run: ({ app, principal }, { approval_id }) => loadCard(app, principal, approval_id),
});

const decisionInput = z.strictObject({
  approval_id,
  note: noteSchema.optional(),
  card_hash: shownCardHash.optional(),
  signature: signatureSchema.optional(),
  group_of: z
    .int()
    .min(1)
    .max(SERVICE_LIMITS.page_max)
    .optional()
    .meta({ description: "the number of requests decided together; the card counts as not opened" }),
});
const decisionErrors = { not_found: "unknown request", conflict: "already decided, or the card has changed" };

export const approveRequest = defineOperation({
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

export const denyRequest = defineOperation({
  id: "deny",
  summary: "Deny a request; with `offer`, approve different arguments for the same tool",
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
      ...(offer && { offer: { args: offer.args as JsonValue } }),
    };
    const decided = await decideRequest(caller, approval_id, decision);
    if (offer === undefined) return decided;
    const { app } = caller;
    return withOffer(caller, (await app.core.store.get("approvals", approval_id))!);
  },
});

export const withdrawRequest = defineOperation({
  id: "withdraw",
  summary: "Withdraw your own open request",
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
      throw notFoundError(`unknown approval request ${approval_id}`, "unknown_approval");
    if (!own)
      throw forbiddenError("only the principal that made the request can withdraw it", "run_owner_only");
    return told(app, await app.core.store.transact(withdrawUnit(app.core, principal, approval_id)));
  },
});

/** Withdraws the open requests of a run, for the probe. Returns how many there were. */
export async function withdrawRequestsOf(
  app: ServiceApp,
  principal: CallerPrincipal,
  run_id: string,
): Promise<number> {
  const open = { owner: run_id, tag: approvalTags(["pending"]), limit: SERVICE_LIMITS.page_default };
  const rows = await app.core.store.list("approvals", open);
  for (const { doc } of rows)
    told(app, await app.core.store.transact(withdrawUnit(app.core, principal, doc.id)));
  return rows.length;
}

export const breakGlass = defineOperation({
  id: "break_glass",
  summary: "Approve alone, regardless of quorum and groups; raises an alert",
  role: "admin",
  within_tenant: true,
  input: z.strictObject({
    approval_id,
    reason: z
      .string()
      .max(SERVICE_LIMITS.note_chars)
      .refine(
        (value) => value.trim().length >= SERVICE_LIMITS.break_glass_reason_chars,
        `at least ${SERVICE_LIMITS.break_glass_reason_chars} characters`,
      ),
    signature: signatureSchema.optional(),
  }),
  output: approvalViewShape,
  errors: { not_found: "unknown request", conflict: "already decided" },
  async run({ app, principal }, { approval_id, reason, signature }) {
    if (signature !== undefined) await cacheCard(app, approval_id, true);
    return withSigningLink(app, `approvals/${approval_id}`, async () => {
      const given = { reason, signature: await checkGiven(app, principal, signature) };
      const unit = breakGlassUnit(app.core, principal, approval_id, given);
      return told(app, await app.core.store.transact(unit));
    });
  },
});

export const preApprove = defineOperation({
  id: "pre_approve",
  summary: "Approve a call in advance",
  role: "approver",
  input: z.strictObject({
    run_id: runId,
    tool: toolSchema,
    args: anyJson,
    note: noteSchema.optional(),
    ttl: z
      .string()
      .refine((value) => (tryDuration(value) ?? 0) > 0, "must be a duration such as 4h")
      .optional(),
    signature: signatureSchema.optional(),
  }),
  output: approvalViewShape,
  errors: { not_found: "unknown run", conflict: "the content changed since it was signed" },
  run_of: ({ run_id }) => run_id,
  async run({ app, principal }, { run_id, ...body }) {
    const input = {
      tool: body.tool,
      args: body.args as JsonValue,
      note: body.note ?? null,
      ttl_ms: body.ttl === undefined ? null : tryDuration(body.ttl)!,
      signature: await checkGiven(app, principal, body.signature),
    };
    await precomputeCall(app.core, input);
    return told(app, await app.core.store.transact(preApproveUnit(app.core, principal, run_id, input)));
  },
});
