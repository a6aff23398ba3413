/** Asking a witness for its cosignature (C2SP tlog-witness, `add-checkpoint`). */
import type { AnchorSink } from "../../config/sections/operations.ts";
import type { Egress } from "../../egress/egress.ts";
import { invalid, SvcError } from "../../kernel/errors.ts";
import { LIMITS } from "../../kernel/limits.ts";
import type { Store } from "../../port/store.ts";
import type { SigningKey } from "../signing.ts";
import { checkpointBody, cosignatureOf, signCheckpoint, type TreeHead } from "./checkpoint.ts";
import { type Cosigned, keptCosignatures } from "./kept.ts";
import { readWitnessKey } from "./keys.ts";
import { parseSignatures, type VerifierKey } from "./note.ts";
import { LedgerProofs } from "./proofs.ts";

export type WitnessSink = Extract<AnchorSink, { type: "witness" }>;

interface AskingParts {
  store: Store;
  egress: Egress;
  signing: SigningKey | null;
  origin: string | null;
}

/** The witness may stand elsewhere than was thought, and another server may have been there in between. */
const ATTEMPTS = 4;

/** The witness's cosignature of the ledger as it stands; throws with what it refused. */
export async function askWitness(sink: WitnessSink, parts: AskingParts): Promise<Cosigned> {
  const { store, egress, signing, origin } = parts;
  if (signing === null || origin === null)
    throw invalid(
      "a witness needs checkpoints that are signed: make a key with svc keygen and set signing_key",
    );
  const witness = readWitnessKey(sink.key);
  const known = (await keptCosignatures(store))[witness.key.key_id];
  let old = known?.origin === origin ? known.size : 0;
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const proofs = await LedgerProofs.of(store);
    const head: TreeHead = { origin, ...proofs.snapshot.tree };
    if (old > head.size) throw isAhead(old, head.size);
    const proof = await proofs.consistency(old, head.size);
    const answer = await egress.request(`${sink.url.replace(/\/+$/, "")}/add-checkpoint`, {
      method: "POST",
      headers: { "content-type": "text/plain; charset=utf-8" },
      body: requestBody(old, proof, signCheckpoint(head, signing)),
      timeout_ms: LIMITS.egress_timeout_ms,
      max_bytes: 65_536,
      cut: true,
    });
    const text = Buffer.from(answer.body).toString("utf8");
    if (answer.status === 200) return cosignedBy(witness, head, text);
    if (answer.status !== 409) throw refusal(answer.status, origin);
    const stands = standsAt(text);
    // It stands where it was told to: what it refuses is another history of the same size.
    if (old === head.size && (stands === old || stands === null)) throw refusal(422, origin);
    if (stands === null)
      throw new SvcError("delivery_failed", "the witness answered 409 without the size at which it stands");
    old = stands;
  }
  throw new SvcError(
    "delivery_failed",
    "the witness kept moving while it was asked; it is asked again at the next anchor",
  );
}

export function requestBody(old: number, proof: readonly string[], checkpoint: string): string {
  const lines = proof.map((hex) => `${Buffer.from(hex, "hex").toString("base64")}\n`).join("");
  return `old ${old}\n${lines}\n${checkpoint}`;
}

function cosignedBy(witness: VerifierKey, head: TreeHead, text: string): Cosigned {
  const signatures = parseSignatures(text);
  const found =
    typeof signatures === "string" ? null : cosignatureOf(checkpointBody(head), signatures, witness);
  if (found === null || found === "bad")
    throw new SvcError(
      "delivery_failed",
      "the witness did not answer with a cosignature of the key that is configured for it",
    );
  return { ...head, ...found };
}

function standsAt(text: string): number | null {
  const size = /^(?:0|[1-9]\d{0,15})\n?$/.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(size) ? size : null;
}

function isAhead(old: number, size: number): SvcError {
  return new SvcError(
    "delivery_failed",
    `the witness has cosigned ${old} records and the ledger has ${size}: it has been truncated, or another ledger has its origin`,
  );
}

const REFUSALS: Readonly<Record<number, (origin: string) => string>> = {
  403: (origin) => `the witness has another public key for ${origin}; give it the one of /v1/evidence/key`,
  404: (origin) =>
    `the witness does not know the log ${origin}; start it with --log ${origin}=<public key file>`,
  422: () =>
    "the witness refuses: what it cosigned before is not the beginning of this ledger; history was rewritten, or another ledger has its origin",
};

function refusal(status: number, origin: string): SvcError {
  const say = REFUSALS[status] ?? (() => `the witness answered ${status}`);
  return new SvcError("delivery_failed", say(origin));
}
