/** Evidence: signed bundles, their public key, and ledger verification. */
import * as z from "zod";
import { ledgerBundle, runBundle } from "../../evidence/bundles/bundle.ts";
import { checkLedgerOf } from "../../evidence/ledger-check.ts";
import type { SigningKey } from "../../evidence/signing.ts";
import { nullableSchema } from "../../rules/nullable-schema.ts";
import type { ServiceApp } from "../app.ts";
import { DocumentContent, defineOperation } from "../pipeline/operation.ts";
import { noFields, ofRun } from "../schemas.ts";

const JSON_TYPE = "application/json; charset=utf-8";
export const NO_KEY = "signed bundles are not enabled on this server";
export const signingFeature = ({ signing }: ServiceApp): string | null => (signing === null ? NO_KEY : null);
const errors = { not_found: NO_KEY };

/** The feature check ran before the operation, so the key exists. */
function keyOf(app: ServiceApp): SigningKey {
  return app.signing!;
}

export const bundleRun = defineOperation({
  id: "bundle_run",
  summary:
    "Download a signed bundle of one run: its records, an inclusion proof for each, and the ledger head",
  role: "auditor",
  input: ofRun,
  run_of: ({ run_id }) => run_id,
  output: { content_types: ["application/json"] },
  errors: { not_found: `unknown run, or ${NO_KEY}` },
  feature: signingFeature,
  async run({ app }, { run_id }) {
    const { store, env } = app.core;
    const pieces = await runBundle(store, run_id, keyOf(app), env.now());
    const bytes = Buffer.concat(pieces.map((piece) => Buffer.from(piece)));
    return new DocumentContent(JSON_TYPE, bytes, `${run_id}.bundle.json`);
  },
});

export const bundleLedger = defineOperation({
  id: "bundle_ledger",
  summary: "Stream a signed bundle of the entire ledger; the stream breaks off if the ledger does not verify",
  role: "auditor",
  input: noFields,
  output: { content_types: ["application/json"] },
  errors,
  feature: signingFeature,
  async run({ app }) {
    const { store, env } = app.core;
    const parts = ledgerBundle(store, keyOf(app), env.now());
    // Produce the first part before the response starts, so that an early failure is still an error response.
    const first = await parts.next();
    return new DocumentContent(JSON_TYPE, startingWith(first, parts), "ledger.bundle.json");
  },
});

async function* startingWith(
  first: IteratorResult<string>,
  rest: AsyncGenerator<string>,
): AsyncGenerator<string> {
  if (first.done) return;
  yield first.value;
  yield* rest;
}

export const evidenceKey = defineOperation({
  id: "evidence_key",
  summary: "Read the public key for bundles and anchors",
  role: "auditor",
  within_tenant: true,
  input: noFields,
  output: z.strictObject({
    key_id: z.string().meta({ description: "the first 16 hex digits of SHA-256 over the raw public key" }),
    public_key: z.string().meta({ description: "Ed25519, as PEM; save it as a file for --pub" }),
  }),
  errors,
  feature: signingFeature,
  async run({ app }) {
    const { key_id, pem } = keyOf(app);
    return { key_id, public_key: pem };
  },
});

export const verifyLedger = defineOperation({
  id: "verify_ledger",
  summary: "Verify the entire ledger: every hash, every link, and the numbering within runs",
  role: "auditor",
  input: noFields,
  output: z.strictObject({
    ok: z.boolean(),
    records: z.int(),
    head: z.string(),
    first_bad: nullableSchema(z.strictObject({ seq: z.int(), problem: z.string() })),
  }),
  errors,
  feature: signingFeature,
  async run({ app }) {
    const { records, head, first_bad } = await checkLedgerOf(app.core.store, app.settings.data);
    if (first_bad === null) return { ok: true, records, head, first_bad };
    const ledger = await app.core.store.head();
    return { ok: false, records: ledger.records, head: ledger.hash, first_bad };
  },
});
