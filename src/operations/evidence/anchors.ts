/** Publishes an anchor on demand. */
import * as z from "zod";
import { type AnchoringDeps, anchorNow } from "../../evidence/anchors/anchoring.ts";
import { SvcError } from "../../kernel/errors.ts";
import { nullableSchema } from "../../rules/nullable-schema.ts";
import { announceRecords, type ServiceApp } from "../app.ts";
import { defineOperation } from "../pipeline/operation.ts";
import { noFields } from "../schemas.ts";
import { ledgerOrigin } from "./checkpoints.ts";

const NO_SINKS = "no anchor sinks are configured on this server";

const anchorView = z.strictObject({
  format: z.literal("svc-anchor"),
  version: z.literal(1),
  ts_ms: z.int(),
  head: z.string(),
  records: z.int(),
  region: z.string().optional(),
  tree: z.strictObject({ size: z.int(), root: z.string() }),
  key_id: z.string().optional(),
  signature: z.string().optional(),
});
const sinkView = z.strictObject({
  type: z.enum(["file", "webhook", "witness"]),
  target: z.string(),
  ok: z.boolean(),
  error: nullableSchema(z.string()),
});

/** Dependencies of anchoring, also for the background task. */
export function anchoringDeps(app: ServiceApp): AnchoringDeps {
  const { core, settings, egress, signing } = app;
  return {
    store: core.store,
    env: core.env,
    egress,
    signing,
    region: settings.egress.region ?? null,
    origin: ledgerOrigin(app),
    sinks: settings.anchor.sinks,
    recorded: (records) => announceRecords(core.listeners, records),
  };
}

export const publishAnchor = defineOperation({
  id: "publish_anchor",
  summary: "Publish an anchor of the ledger to every configured sink",
  role: "admin",
  input: noFields,
  output: z.strictObject({ anchor: anchorView, sinks: z.array(sinkView) }),
  errors: {
    not_found: NO_SINKS,
    delivery_failed: "delivery to a sink failed; the body contains the anchor and every sink's result",
  },
  feature: ({ settings }) => (settings.anchor.sinks.length === 0 ? NO_SINKS : null),
  async run({ app, principal }) {
    const published = await anchorNow(anchoringDeps(app), principal.name);
    const failed = published.sinks.filter(({ ok }) => !ok);
    if (failed.length === 0) return published;
    const where = failed.map(({ target, error }) => `${target}: ${error}`).join("; ");
    throw new SvcError("delivery_failed", `the anchor was not delivered everywhere: ${where}`, {
      extra: { ...published },
    });
  },
});
