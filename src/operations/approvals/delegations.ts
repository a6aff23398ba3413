/** Delegations: delegate the authority to approve, and revoke it. */
import * as z from "zod";
import {
  type DelegationView,
  delegationView,
  type StoredDelegation,
} from "../../govern/approvals/approval.ts";
import { delegatedGroups } from "../../govern/approvals/authority.ts";
import { delegateUnit, revokeUnit, unknownDelegation } from "../../govern/approvals/delegations.ts";
import { tenantBinding } from "../../govern/roles.ts";
import { signatureSchema } from "../../govern/signing/payload.ts";
import { tryTimestamp } from "../../kernel/duration.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { nullableSchema } from "../../rules/nullable-schema.ts";
import { announceRecords, type ServiceApp } from "../app.ts";
import { cutPage, positionOf } from "../cursor.ts";
import { defineOperation } from "../pipeline/operation.ts";
import { boundedText, givenId, pagingFields, personsReason } from "../schemas.ts";
import { checkGiven, withSigningLink } from "../signing/check-signature.ts";

const principalShape = z.strictObject({
  kind: z.string(),
  issuer: nullableSchema(z.string()),
  name: z.string(),
});

const delegationShape = z.strictObject({
  id: z.string(),
  from: z.string(),
  to: z.string(),
  tools: z.string(),
  reason: z.string(),
  created_ms: z.int(),
  expires_ms: z.int(),
  revoked_ms: nullableSchema(z.int()),
  from_principal: principalShape,
  to_principal: principalShape,
  in_force: z.boolean(),
});

function shown({ core, today }: ServiceApp, delegation: StoredDelegation): DelegationView {
  return delegationView(delegation, delegatedGroups(delegation, { now: core.env.now(), today }) !== null);
}

export const listDelegations = defineOperation({
  id: "list_delegations",
  summary: "List delegations, newest first",
  role: "auditor",
  within_tenant: true,
  input: z.strictObject(pagingFields),
  output: z.strictObject({ delegations: z.array(delegationShape), next_cursor: nullableSchema(z.string()) }),
  async run({ app }, { limit = SERVICE_LIMITS.page_max, cursor }) {
    const after = positionOf(cursor);
    const rows = await app.core.store.list("delegations", { order: "desc", limit: limit + 1, after });
    const { page, next } = cutPage(rows, limit);
    return { delegations: page.map((row) => shown(app, row.doc)), next_cursor: next };
  },
});

export const createDelegation = defineOperation({
  id: "create_delegation",
  summary: "Delegate your authority to approve",
  role: "approver",
  within_tenant: true,
  input: z.strictObject({
    to: boundedText(256),
    to_kind: z.enum(["key", "oidc"]).optional(),
    tools: boundedText(256).optional(),
    expires_at: z
      .string()
      .refine((value) => tryTimestamp(value) !== undefined, "must be an ISO 8601 timestamp"),
    reason: personsReason,
    signature: signatureSchema.optional(),
  }),
  output: delegationShape,
  errors: { conflict: "the content changed since it was signed" },
  async run({ app, principal }, body) {
    const input = {
      to: body.to,
      to_id: app.principalNamed(body.to, body.to_kind, tenantBinding(principal)),
      tools: body.tools ?? "*",
      reason: body.reason,
      expires_ms: tryTimestamp(body.expires_at)!,
      signature: await checkGiven(app, principal, body.signature),
    };
    const { delegation, records } = await withSigningLink(app, "approvals", () =>
      app.core.store.transact(delegateUnit(app.core, principal, input)),
    );
    announceRecords(app.core.listeners, records);
    return shown(app, delegation);
  },
});

export const revokeDelegation = defineOperation({
  id: "revoke_delegation",
  summary: "Revoke a delegation",
  role: "approver",
  within_tenant: true,
  input: z.strictObject({ delegation_id: givenId("dlg_<uuid>") }),
  output: delegationShape,
  errors: { not_found: "unknown delegation", conflict: "already revoked" },
  async run({ app, principal }, { delegation_id }) {
    // Read through this caller's view of the store, where another tenant's delegation does not exist.
    if ((await app.core.store.get("delegations", delegation_id)) === undefined)
      throw unknownDelegation(delegation_id);
    const { delegation, records } = await app.core.store.transact(
      revokeUnit(app.core, principal, delegation_id),
    );
    announceRecords(app.core.listeners, records);
    return shown(app, delegation);
  },
});
