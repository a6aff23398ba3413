/** Requests a cosignature from a witness (C2SP tlog-witness, `add-checkpoint`). */
import type { AnchorSink } from "../../config/sections/operations.ts";
import type { EgressClient } from "../../egress/egress.ts";
import type { StateStore } from "../../govern/port/store.ts";
import { invalidError, SvcError } from "../../kernel/errors.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import type { SigningKey } from "../signing.ts";
import { checkpointBody, cosignatureOf, signCheckpoint, type TreeHead } from "./checkpoint.ts";
import { type CosignedTreeHead, loadCosignatures } from "./cosignature-store.ts";
import { parseSignatures, type VerifierKey } from "./note.ts";
import { LedgerProofs } from "./proofs.ts";
import { readWitnessKey } from "./witness-keys.ts";

export type WitnessSink = Extract<AnchorSink, { type: "witness" }>;

interface AskingParts {
  store: StateStore;
  egress: EgressClient;
  signing: SigningKey | null;
  origin: string | null;
}

/**
 * Attempts until the sizes agree. The witness may be at an unexpected size, and another server may ask it at the same
 * time.
 */
const ATTEMPTS = 4;

/** Returns the witness's cosignature of the current ledger. Throws with the witness's reason for a refusal. */
export async function askWitness(sink: WitnessSink, parts: AskingParts): Promise<CosignedTreeHead> {
  const { store, egress, signing, origin } = parts;
  if (signing === null || origin === null)
    throw invalidError(
      "a witness needs signed checkpoints: create a key with svc keygen and set signing_key",
    );
  const witness = readWitnessKey(sink.key);
  const known = (await loadCosignatures(store))[witness.key.key_id];
  let old = known?.origin === origin ? known.size : 0;
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const proofs = await LedgerProofs.of(store);
    const head: TreeHead = { origin, ...proofs.snapshot.tree };
    if (old > head.size) throw isAhead(old, head.size);
    const proof = await proofs.consistency(old, head.size);
    const answer = await egress.request(`${sink.url.replace(/(?<!\/)\/+$/, "")}/add-checkpoint`, {
      method: "POST",
      headers: { "content-type": "text/plain; charset=utf-8" },
      body: requestBody(old, proof, signCheckpoint(head, signing)),
      timeout_ms: SERVICE_LIMITS.egress_timeout_ms,
      max_bytes: 65_536,
      cut: true,
    });
    const text = Buffer.from(answer.body).toString("utf8");
    if (answer.status === 200) return cosignedBy(witness, head, text);
    if (answer.status !== 409) throw refusal(answer.status, origin);
    const size = sizeIn(text);
    // The witness is at the expected size, so it refuses a different history of that size.
    if (old === head.size && (size === old || size === null)) throw refusal(422, origin);
    if (size === null) throw new SvcError("delivery_failed", "the witness answered 409 without its size");
    old = size;
  }
  throw new SvcError(
    "delivery_failed",
    "the witness's checkpoint kept changing; the next anchor tries again",
  );
}

export function requestBody(old: number, proof: readonly string[], checkpoint: string): string {
  const lines = proof.map((hex) => `${Buffer.from(hex, "hex").toString("base64")}\n`).join("");
  return `old ${old}\n${lines}\n${checkpoint}`;
}

function cosignedBy(witness: VerifierKey, head: TreeHead, text: string): CosignedTreeHead {
  const signatures = parseSignatures(text);
  const found =
    typeof signatures === "string" ? null : cosignatureOf(checkpointBody(head), signatures, witness);
  if (found === null || found === "bad")
    throw new SvcError("delivery_failed", "the witness did not return a cosignature by its configured key");
  return { ...head, ...found };
}

function sizeIn(text: string): number | null {
  const size = /^(?:0|[1-9]\d{0,15})\n?$/.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(size) ? size : null;
}

function isAhead(old: number, size: number): SvcError {
  return new SvcError(
    "delivery_failed",
    `the witness has cosigned ${old} records and the ledger has ${size}: it has been truncated, or another ledger has the same origin`,
  );
}

const REFUSALS: Readonly<Record<number, (origin: string) => string>> = {
  403: (origin) =>
    `the witness has a different public key for ${origin}; give it the key from /v1/evidence/key`,
  404: (origin) =>
    `the witness does not know the log ${origin}; start it with --log ${origin}=<public key file>`,
  422: () =>
    "the witness refuses: its last cosigned checkpoint is not a prefix of this ledger; history was rewritten, or another ledger has the same origin",
};

function refusal(status: number, origin: string): SvcError {
  const say = REFUSALS[status] ?? (() => `the witness answered ${status}`);
  return new SvcError("delivery_failed", say(origin));
}
