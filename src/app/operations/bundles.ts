/** Evidence: signed bundles, the public key they are signed with, and the check of the ledger itself. */
import * as z from "zod";
import { ledgerBundle, runBundle } from "../../evidence/bundle.ts";
import { checkLedgerOf } from "../../evidence/ledger-check.ts";
import type { SigningKey } from "../../evidence/signing.ts";
import type { App } from "../app.ts";
import { Content, operation } from "../door/operation.ts";
import { noFields, nullable, ofRun } from "./schemas.ts";

const JSON_TYPE = "application/json; charset=utf-8";
export const NO_KEY = "signed bundles are not enabled on this server";
export const signingFeature = ({ signing }: App): string | null => (signing === null ? NO_KEY : null);
const errors = { not_found: NO_KEY };

/** The feature is asked for before the operation runs, so the key is there. */
function keyOf(app: App): SigningKey {
  return app.signing!;
}

export const bundleRun = operation({
  id: "bundle_run",
  summary: "A signed bundle of one run: its records, a proof of inclusion for each, and the ledger's head",
  role: "auditor",
  input: ofRun,
  run_of: ({ run_id }) => run_id,
  output: { content_types: ["application/json"] },
  errors: { not_found: `unknown run, or ${NO_KEY}` },
  feature: signingFeature,
  async run({ app }, { run_id }) {
    const { store, env } = app.core;
    const text = await runBundle(store, run_id, keyOf(app), env.now());
    return new Content(JSON_TYPE, text, `${run_id}.bundle.json`);
  },
});

export const bundleLedger = operation({
  id: "bundle_ledger",
  summary: "A signed bundle of the whole ledger; it streams, and is cut off where the ledger does not verify",
  role: "auditor",
  input: noFields,
  output: { content_types: ["application/json"] },
  errors,
  feature: signingFeature,
  async run({ app }) {
    const { store, env } = app.core;
    const parts = ledgerBundle(store, keyOf(app), env.now());
    // The first page is checked before an answer begins, so that a bad beginning is still an error.
    const first = await parts.next();
    return new Content(JSON_TYPE, startingWith(first, parts), "ledger.bundle.json");
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

export const evidenceKey = operation({
  id: "evidence_key",
  summary: "The public key that bundles and anchors are signed with",
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

export const verifyLedger = operation({
  id: "verify_ledger",
  summary: "Verify the whole ledger: every hash, every link, and the numbering within runs",
  role: "auditor",
  input: noFields,
  output: z.strictObject({
    ok: z.boolean(),
    records: z.int(),
    head: z.string(),
    first_bad: nullable(z.strictObject({ seq: z.int(), problem: z.string() })),
  }),
  errors,
  feature: signingFeature,
  async run({ app }) {
    const { records, head, first_bad } = await checkLedgerOf(app.core.store, app.settings.data);
    if (first_bad === null) return { ok: true, records, head, first_bad };
    const stands = await app.core.store.head();
    return { ok: false, records: stands.records, head: stands.hash, first_bad };
  },
});
