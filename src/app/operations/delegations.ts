/** Delegations: lending and taking back the authority to approve. */
import * as z from "zod";
import { lentNow } from "../../engine/approvals/authority.ts";
import { delegateUnit, revokeUnit, unknownDelegation } from "../../engine/approvals/delegations.ts";
import { tryTimestamp } from "../../kernel/duration.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { type Delegation, type DelegationView, delegationView } from "../../model/approval.ts";
import { boundTo } from "../../model/roles.ts";
import { type App, announce } from "../app.ts";
import { operation } from "../door/operation.ts";
import { cutPage, positionOf } from "./cursor.ts";
import { givenId, nullable, paging, personsReason, text } from "./schemas.ts";

const principalShape = z.strictObject({
  kind: z.string(),
  issuer: nullable(z.string()),
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
  revoked_ms: nullable(z.int()),
  from_principal: principalShape,
  to_principal: principalShape,
  in_force: z.boolean(),
});

function shown({ core, today }: App, delegation: Delegation): DelegationView {
  return delegationView(delegation, lentNow(delegation, { now: core.env.now(), today }) !== null);
}

export const listDelegations = operation({
  id: "list_delegations",
  summary: "List delegations, newest first",
  role: "auditor",
  within_tenant: true,
  input: z.strictObject(paging),
  output: z.strictObject({ delegations: z.array(delegationShape), next_cursor: nullable(z.string()) }),
  async run({ app }, { limit = LIMITS.page_max, cursor }) {
    const after = positionOf(cursor);
    const rows = await app.core.store.list("delegations", { order: "desc", limit: limit + 1, after });
    const { page, next } = cutPage(rows, limit);
    return { delegations: page.map((row) => shown(app, row.doc)), next_cursor: next };
  },
});

export const createDelegation = operation({
  id: "create_delegation",
  summary: "Lend your authority to approve",
  role: "approver",
  within_tenant: true,
  input: z.strictObject({
    to: text(256),
    to_kind: z.enum(["key", "oidc"]).optional(),
    tools: text(256).optional(),
    expires_at: z
      .string()
      .refine((value) => tryTimestamp(value) !== undefined, "must be an ISO 8601 timestamp"),
    reason: personsReason,
  }),
  output: delegationShape,
  async run({ app, principal }, body) {
    const input = {
      to: body.to,
      to_id: app.principalNamed(body.to, body.to_kind, boundTo(principal)),
      tools: body.tools ?? "*",
      reason: body.reason,
      expires_ms: tryTimestamp(body.expires_at)!,
    };
    const { delegation, records } = await app.core.store.transact(delegateUnit(app.core, principal, input));
    announce(app.core.listeners, records);
    return shown(app, delegation);
  },
});

export const revokeDelegation = operation({
  id: "revoke_delegation",
  summary: "Take lent authority back",
  role: "approver",
  within_tenant: true,
  input: z.strictObject({ delegation_id: givenId("dlg_<uuid>") }),
  output: delegationShape,
  errors: { not_found: "unknown delegation", conflict: "already revoked" },
  async run({ app, principal }, { delegation_id }) {
    // Through the store as this caller sees it: another tenant's delegation is not there.
    if ((await app.core.store.get("delegations", delegation_id)) === undefined)
      throw unknownDelegation(delegation_id);
    const { delegation, records } = await app.core.store.transact(
      revokeUnit(app.core, principal, delegation_id),
    );
    announce(app.core.listeners, records);
    return shown(app, delegation);
  },
});
