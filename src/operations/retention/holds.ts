/** Legal holds. */

import * as z from "zod";
import { holdShape } from "../../govern/runs/hold.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { MAX_LISTED_HOLDS, placeHoldUnit, releaseHoldUnit, unknownHold } from "../../retention/holds.ts";
import { nullableSchema } from "../../rules/nullable-schema.ts";
import type { ServiceApp } from "../app.ts";
import { cutPage, positionOf } from "../cursor.ts";
import { effectiveTenant, hideForeignRun } from "../pipeline/access.ts";
import { defineOperation } from "../pipeline/operation.ts";
import { boundedText, givenId, pagingFields } from "../schemas.ts";

/** Without a `retention` section nothing is ever deleted, so holds are off too. */
export const retentionFeature = (app: ServiceApp) =>
  app.core.rules().policy.retention === null ? "no retention settings" : null;

export const listHolds = defineOperation({
  id: "list_holds",
  summary: "List legal holds; with `all`, released ones too",
  role: "auditor",
  within_tenant: true,
  input: z.strictObject({ all: z.boolean().optional(), ...pagingFields }),
  output: z.strictObject({ holds: z.array(holdShape), next_cursor: nullableSchema(z.string()) }),
  feature: retentionFeature,
  errors: { not_found: "no retention settings" },
  async run({ app }, { all, limit = MAX_LISTED_HOLDS, cursor }) {
    const tag = all ? undefined : "active";
    const after = positionOf(cursor);
    const rows = await app.core.store.list("holds", { tag, order: "desc", limit: limit + 1, after });
    const { page, next } = cutPage(rows, limit);
    return { holds: page.map((row) => row.doc), next_cursor: next };
  },
});

const field = boundedText(512).optional();

export const placeHold = defineOperation({
  id: "place_hold",
  summary: "Place a legal hold: the runs it covers are not deleted",
  role: "admin",
  within_tenant: true,
  input: z.strictObject({
    run_id: field,
    tenant: field,
    actor: field,
    tool: field,
    reason: z.string().max(SERVICE_LIMITS.reason_chars),
  }),
  output: holdShape,
  feature: retentionFeature,
  errors: { not_found: "no retention settings, or a run outside the caller's tenant" },
  async run({ app, principal }, { reason, ...given }) {
    const scope = { ...given, tenant: effectiveTenant(principal, given.tenant) };
    if (given.run_id !== undefined) await hideForeignRun(app, principal, given.run_id);
    return app.core.store.transact(placeHoldUnit(app.core, principal.name, { scope, reason }));
  },
});

export const releaseHold = defineOperation({
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
    // Read through this caller's view of the store, where another tenant's hold does not exist.
    if ((await store.get("holds", hold_id)) === undefined) throw unknownHold(hold_id);
    return store.transact(releaseHoldUnit(app.core, principal.name, hold_id));
  },
});
