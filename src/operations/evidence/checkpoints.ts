/**
 * Signed checkpoints of the ledger's Merkle tree and proofs between them, for auditors who do not trust this server.
 */
import * as z from "zod";
import { signCheckpoint } from "../../evidence/witness/checkpoint.ts";
import { loadCosignatures } from "../../evidence/witness/cosignature-store.ts";
import { LedgerProofs } from "../../evidence/witness/proofs.ts";
import { invalidError, notFoundError } from "../../kernel/errors.ts";
import type { ServiceApp } from "../app.ts";
import { DocumentContent, defineOperation } from "../pipeline/operation.ts";
import { NO_KEY, signingFeature } from "./bundles.ts";

const errors = { not_found: NO_KEY };
const count = z.int().min(0);
const hashes = z.array(z.string()).meta({ description: "hashes in hex, in the order of RFC 6962" });

/** Name of this ledger in checkpoints; null without a signing key. */
export function ledgerOrigin({ settings, signing }: ServiceApp): string | null {
  return signing === null ? null : (settings.ledger_origin ?? `svc/${signing.key_id}`);
}

export const ledgerCheckpoint = defineOperation({
  id: "ledger_checkpoint",
  summary: "Read the ledger's size and root as a signed checkpoint (C2SP tlog-checkpoint)",
  role: "auditor",
  input: z.strictObject({
    witnessed: z
      .boolean()
      .optional()
      .meta({ description: "return the newest checkpoint that a witness has cosigned" }),
  }),
  output: { content_types: ["text/plain"] },
  errors: { not_found: `${NO_KEY}, or no witness has cosigned yet` },
  feature: signingFeature,
  async run({ app }, { witnessed }) {
    const { store } = app.core;
    const key = app.signing!;
    const kept = Object.values(await loadCosignatures(store)).sort((a, b) => b.size - a.size);
    if (witnessed === true && kept.length === 0)
      throw notFoundError("no witness has cosigned yet: configure an anchor sink {type: witness, url, key}");
    const head =
      witnessed === true
        ? kept[0]!
        : { origin: ledgerOrigin(app)!, ...(await LedgerProofs.of(store)).snapshot.tree };
    const same = kept.filter(
      ({ origin, size, root }) => origin === head.origin && size === head.size && root === head.root,
    );
    const text = signCheckpoint(head, key, same.map(({ line }) => line).join(""));
    return new DocumentContent("text/plain; charset=utf-8", text, "checkpoint.txt");
  },
});

export const ledgerConsistency = defineOperation({
  id: "ledger_consistency",
  summary: "Prove that an earlier ledger is a prefix of a later one (RFC 6962, 2.1.2)",
  role: "auditor",
  input: z.strictObject({ from: count, to: count.optional() }),
  output: z.strictObject({
    from: z.int(),
    to: z.int(),
    from_root: z.string().meta({ description: "the root over the first `from` records, in hex" }),
    to_root: z.string(),
    proof: hashes,
  }),
  errors,
  feature: signingFeature,
  async run({ app }, input) {
    const proofs = await LedgerProofs.of(app.core.store);
    const { from, to = proofs.snapshot.records } = input;
    checkSize("to", to, proofs);
    if (from > to) throw invalidError(`from: must not be larger than to, which is ${to}`);
    return {
      from,
      to,
      from_root: await proofs.root(from),
      to_root: await proofs.root(to),
      proof: await proofs.consistency(from, to),
    };
  },
});

export const ledgerInclusion = defineOperation({
  id: "ledger_inclusion",
  summary: "Prove that a record is in the ledger's tree of a given size (RFC 6962, 2.1.1)",
  role: "auditor",
  input: z.strictObject({ seq: count, size: count.optional() }),
  output: z.strictObject({
    seq: z.int(),
    size: z.int(),
    leaf_hash: z.string().meta({ description: "SHA-256 over a zero byte and the record without its hash" }),
    root: z.string(),
    proof: hashes,
  }),
  errors,
  feature: signingFeature,
  async run({ app }, input) {
    const proofs = await LedgerProofs.of(app.core.store);
    const { seq, size = proofs.snapshot.records } = input;
    checkSize("size", size, proofs);
    if (seq >= size) throw invalidError(`seq: must be below the size, which is ${size}`);
    return {
      seq,
      size,
      leaf_hash: await proofs.leaf(seq),
      root: await proofs.root(size),
      proof: await proofs.inclusion(seq, size),
    };
  },
});

function checkSize(name: string, size: number, { snapshot }: LedgerProofs): void {
  if (size > snapshot.records)
    throw invalidError(`${name}: the ledger has ${snapshot.records} records; request at most that many`);
}
