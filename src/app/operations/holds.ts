/** Legal holds over HTTP and the command line. */
import { z } from "zod";
import { LIMITS } from "../../kernel/limits.ts";
import { placeHoldUnit, listHolds as readHolds, releaseHoldUnit } from "../../retention/holds.ts";
import type { App } from "../app.ts";
import { operation } from "../operation.ts";
import { emptyQuery, givenId, noParams, text } from "../schemas.ts";

/** Nothing is ever deleted without a `retention` section, so there is nothing to hold either. */
export const retentionFeature = (app: App) =>
  app.core.rules().policy.retention === null ? "no retention settings" : null;

const nullable = z.union([z.string(), z.null()]);
const holdShape = z.strictObject({
  id: z.string(),
  scope: z.strictObject({ run_id: nullable, tenant: nullable, actor: nullable, tool: nullable }),
  reason: z.string(),
  by: z.string(),
  created_ms: z.int(),
  released_ms: z.union([z.int(), z.null()]),
  released_by: nullable,
});

export const listHolds = operation({
  id: "list_holds",
  summary: "List legal holds; ?all=1 includes released ones",
  method: "GET",
  path: "/v1/holds",
  role: "auditor",
  params: noParams,
  query: z.strictObject({ all: z.enum(["0", "1"]).optional() }),
  output: z.strictObject({ holds: z.array(holdShape) }),
  status: 200,
  feature: retentionFeature,
  errors: { 404: "no retention settings" },
  async run({ app }, { query }) {
    return { holds: await readHolds(app.core.store, query.all === "1") };
  },
});

const field = text(512).optional();

export const placeHold = operation({
  id: "place_hold",
  summary: "Place a legal hold: the runs it covers are not deleted",
  method: "POST",
  path: "/v1/holds",
  role: "admin",
  params: noParams,
  query: emptyQuery,
  body: z.strictObject({
    run_id: field,
    tenant: field,
    actor: field,
    tool: field,
    reason: z.string().max(LIMITS.reason_chars),
  }),
  output: holdShape,
  status: 201,
  feature: retentionFeature,
  errors: { 404: "no retention settings" },
  async run({ app, principal }, { body }) {
    const { reason, ...scope } = body;
    return app.core.store.transact(placeHoldUnit(app.core, principal.name, { scope, reason }));
  },
});

export const releaseHold = operation({
  id: "release_hold",
  summary: "Release a legal hold; it stays on record",
  method: "DELETE",
  path: "/v1/holds/{id}",
  role: "admin",
  params: z.strictObject({ id: givenId("hold_<uuid>") }),
  query: emptyQuery,
  output: holdShape,
  status: 200,
  feature: retentionFeature,
  errors: { 404: "no retention settings, or no such hold", 409: "already released" },
  run: ({ app, principal }, { params }) =>
    app.core.store.transact(releaseHoldUnit(app.core, principal.name, params.id)),
});
