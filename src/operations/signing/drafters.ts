/** Builds what a person will sign, for each kind of decision, after checking that the person may decide. */
import * as z from "zod";
import { type ApprovalDoc, OPEN_APPROVAL_STATUSES } from "../../govern/approvals/approval.ts";
import { tenantBinding } from "../../govern/roles.ts";
import {
  approvalDraft,
  callDraft,
  delegationDraft,
  grantDraft,
  type PayloadDraft,
  planDraft,
} from "../../govern/signing/draft.ts";
import { confirmationOf, unknownPasskey } from "../../govern/signing/enrol.ts";
import type { SignedKind } from "../../govern/signing/payload.ts";
import { tryDuration, tryTimestamp } from "../../kernel/duration.ts";
import { conflictError, forbiddenError, invalidError, notFoundError } from "../../kernel/errors.ts";
import { keyedHash } from "../../kernel/hash.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import type { ServiceApp } from "../app.ts";
import { cacheCard, isVoteCounted } from "../approvals/cards.ts";
import { planCardHash } from "../approvals/plan-cards.ts";
import { grantInput, termsOf } from "../grants/grant-input.ts";
import { delegationsTo, requireRole } from "../pipeline/access.ts";
import type { ApiCaller } from "../pipeline/operation.ts";
import { describeIssues } from "../pipeline/validation-messages.ts";
import { anyJson, boundedText, personsReason, toolSchema } from "../schemas.ts";
import { passkeysOf } from "./check-signature.ts";

export interface AskedSignature {
  id: string | undefined;
  body: unknown;
}

type Drafter = (caller: ApiCaller, asked: AskedSignature) => Promise<PayloadDraft>;

export const PAYLOAD_DRAFTERS: Readonly<Record<SignedKind, Drafter>> = {
  approval: (caller, asked) => approvalOf(caller, asked),
  compensation: (caller, asked) => approvalOf(caller, asked),
  break_glass: draftBreakGlass,
  offer: draftOffer,
  pre_approval: draftPreApproval,
  plan: draftPlan,
  grant: draftGrant,
  delegation: draftDelegation,
  passkey: draftConfirmation,
};

function bodyOf<S extends z.ZodType>(schema: S, body: unknown): z.output<S> {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  throw invalidError(`body: ${describeIssues(parsed.error, "body")}`);
}

async function openRequest(app: ServiceApp, id: string | undefined) {
  const approval = id === undefined ? undefined : await app.core.store.get("approvals", id);
  const run = approval && (await app.core.store.get("runs", approval.run_id));
  if (approval === undefined || run === undefined)
    throw notFoundError(`unknown approval request ${id ?? ""}`, "unknown_approval");
  if (!OPEN_APPROVAL_STATUSES.has(approval.status))
    throw conflictError("already_decided", `request ${approval.id} was already decided (${approval.status})`);
  return { approval, run };
}

async function assertDecides({ app, principal }: ApiCaller, approval: ApprovalDoc): Promise<void> {
  if (!isVoteCounted(app, principal, approval, await delegationsTo(app, principal.name)))
    throw forbiddenError("your vote does not count in this request", "group_required");
}

async function approvalOf(caller: ApiCaller, { id }: AskedSignature, reason?: string): Promise<PayloadDraft> {
  const { core } = caller.app;
  const { approval, run } = await openRequest(caller.app, id);
  if (reason === undefined) await assertDecides(caller, approval);
  await cacheCard(caller.app, approval.id, true);
  const values = await core.store.get("approval_values", approval.id);
  const decision = { by: caller.principal.name, values, ...(reason === undefined ? {} : { reason }) };
  return approvalDraft(core, run, approval, decision);
}

async function draftBreakGlass(caller: ApiCaller, asked: AskedSignature): Promise<PayloadDraft> {
  requireRole(caller.principal, "admin");
  const { reason } = bodyOf(z.looseObject({ reason: personsReason }), asked.body);
  return approvalOf(caller, asked, caller.app.core.redact(reason));
}

async function draftOffer(caller: ApiCaller, { id, body }: AskedSignature): Promise<PayloadDraft> {
  const { core } = caller.app;
  const { approval, run } = await openRequest(caller.app, id);
  await assertDecides(caller, approval);
  const { offer } = bodyOf(z.looseObject({ offer: z.looseObject({ args: anyJson }) }), body);
  const { tool, expires_ms, requested_ms } = approval;
  return callDraft(core, run, {
    kind: "offer",
    id: `apr_${core.env.uuid()}`,
    by: caller.principal.name,
    tool,
    args_hash: keyedHash(run.salt, offer.args as JsonValue),
    expires_ms: core.env.now() + expires_ms - requested_ms,
  });
}

const preApproval = z.looseObject({ tool: toolSchema, args: anyJson, ttl: z.string().optional() });

/** `id` is the run. */
async function draftPreApproval(
  { app, principal }: ApiCaller,
  { id, body }: AskedSignature,
): Promise<PayloadDraft> {
  requireRole(principal, "approver");
  const run = id === undefined ? undefined : await app.core.store.get("runs", id);
  if (run === undefined) throw notFoundError(`unknown run ${id ?? ""}`, "unknown_run");
  const { tool, args, ttl } = bodyOf(preApproval, body);
  const ttl_ms =
    (ttl === undefined ? undefined : tryDuration(ttl)) ?? app.core.rules().policy.approvals.ttl_ms;
  return callDraft(app.core, run, {
    kind: "pre_approval",
    id: `apr_${app.core.env.uuid()}`,
    by: principal.name,
    tool,
    args_hash: keyedHash(run.salt, args as JsonValue),
    expires_ms: app.core.env.now() + ttl_ms,
  });
}

async function draftPlan(caller: ApiCaller, { id }: AskedSignature): Promise<PayloadDraft> {
  const { core } = caller.app;
  const plan = id === undefined ? undefined : await core.store.get("plans", id);
  const run = plan && (await core.store.get("runs", plan.run_id));
  if (plan === undefined || run === undefined)
    throw notFoundError(`unknown plan ${id ?? ""}`, "unknown_plan");
  const delegations = await delegationsTo(caller.app, caller.principal.name);
  if (!plan.internal.requests.some((one) => isVoteCounted(caller.app, caller.principal, one, delegations)))
    throw forbiddenError("your vote does not count in this plan", "group_required");
  const card_hash = await planCardHash(caller.app, run, plan);
  return planDraft(core, run, plan, { by: caller.principal.name, card_hash });
}

async function draftGrant({ app, principal }: ApiCaller, { body }: AskedSignature): Promise<PayloadDraft> {
  requireRole(principal, "approver");
  const input = bodyOf(grantInput, body);
  const own = tenantBinding(principal);
  const terms = termsOf(own === null ? input : { ...input, match: { ...input.match, tenant: own } });
  const head = {
    id: `grt_${app.core.env.uuid()}`,
    by: principal.name,
    expires_ms: tryTimestamp(input.expires_at)!,
  };
  return grantDraft(app.core, head, { ...terms, reason: app.core.redact(input.reason) });
}

const lending = z.looseObject({
  to: boundedText(256),
  to_kind: z.enum(["key", "oidc"]).optional(),
  tools: boundedText(256).optional(),
  expires_at: z
    .string()
    .refine((value) => tryTimestamp(value) !== undefined, "must be an ISO 8601 timestamp"),
  reason: personsReason,
});

async function draftDelegation(
  { app, principal }: ApiCaller,
  { body }: AskedSignature,
): Promise<PayloadDraft> {
  requireRole(principal, "approver");
  const { to, to_kind, tools = "*", expires_at, reason } = bodyOf(lending, body);
  const head = {
    id: `dlg_${app.core.env.uuid()}`,
    by: principal.name,
    expires_ms: tryTimestamp(expires_at)!,
  };
  const to_id = app.principalNamed(to, to_kind, tenantBinding(principal));
  return delegationDraft(app.core, head, { to_id, tools, reason: app.core.redact(reason) });
}

async function draftConfirmation(
  { app, principal }: ApiCaller,
  { id }: AskedSignature,
): Promise<PayloadDraft> {
  const found = (await passkeysOf(app, principal))?.passkeys.find((one) => one.id === id);
  if (found === undefined) throw unknownPasskey();
  return confirmationOf(found, principal, app.core.ledger);
}
