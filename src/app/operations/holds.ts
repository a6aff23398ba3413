/** Legal holds over HTTP and the command line. */
import * as z from "zod";
import { LIMITS } from "../../kernel/limits.ts";
import { HOLDS_LISTED, placeHoldUnit, releaseHoldUnit, unknownHold } from "../../retention/holds.ts";
import type { App } from "../app.ts";
import { hideForeignRun, ownTenant } from "../door/access.ts";
import { operation } from "../door/operation.ts";
import { cutPage, positionOf } from "./cursor.ts";
import { givenId, nullable, paging, text } from "./schemas.ts";

/** Nothing is ever deleted without a `retention` section, so there is nothing to hold either. */
export const retentionFeature = (app: App) =>
  app.core.rules().policy.retention === null ? "no retention settings" : null;

const holdShape = z.strictObject({
  id: z.string(),
  scope: z.strictObject({
    run_id: nullable(z.string()),
    tenant: nullable(z.string()),
    actor: nullable(z.string()),
    tool: nullable(z.string()),
  }),
  reason: z.string(),
  by: z.string(),
  created_ms: z.int(),
  released_ms: nullable(z.int()),
  released_by: nullable(z.string()),
});

export const listHolds = operation({
  id: "list_holds",
  summary: "List legal holds; with `all`, released ones too",
  role: "auditor",
  within_tenant: true,
  input: z.strictObject({ all: z.boolean().optional(), ...paging }),
  output: z.strictObject({ holds: z.array(holdShape), next_cursor: nullable(z.string()) }),
  feature: retentionFeature,
  errors: { not_found: "no retention settings" },
  async run({ app }, { all, limit = HOLDS_LISTED, cursor }) {
    const tag = all ? undefined : "active";
    const after = positionOf(cursor);
    const rows = await app.core.store.list("holds", { tag, order: "desc", limit: limit + 1, after });
    const { page, next } = cutPage(rows, limit);
    return { holds: page.map((row) => row.doc), next_cursor: next };
  },
});

const field = text(512).optional();

export const placeHold = operation({
  id: "place_hold",
  summary: "Place a legal hold: the runs it covers are not deleted",
  role: "admin",
  within_tenant: true,
  input: z.strictObject({
    run_id: field,
    tenant: field,
    actor: field,
    tool: field,
    reason: z.string().max(LIMITS.reason_chars),
  }),
  output: holdShape,
  feature: retentionFeature,
  errors: { not_found: "no retention settings, or a run outside the caller's tenant" },
  async run({ app, principal }, { reason, ...given }) {
    const scope = { ...given, tenant: ownTenant(principal, given.tenant) };
    if (given.run_id !== undefined) await hideForeignRun(app, principal, given.run_id);
    return app.core.store.transact(placeHoldUnit(app.core, principal.name, { scope, reason }));
  },
});

export const releaseHold = operation({
  id: "release_hold",
  summary: "Release a legal hold; it stays on record",
  role: "admin",
  within_tenant: true,
  input: z.strictObject({ hold_id: givenId("hold_<uuid>") }),
  output: holdShape,
  feature: retentionFeature,
  errors: { not_found: "no retention settings, or no such hold", conflict: "already released" },
  async run({ app, principal }, { hold_id }) {
    const { store } = app.core;
    // Through the store as this caller sees it: another tenant's hold is not there.
    if ((await store.get("holds", hold_id)) === undefined) throw unknownHold(hold_id);
    return store.transact(releaseHoldUnit(app.core, principal.name, hold_id));
  },
});
