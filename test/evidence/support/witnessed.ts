/** Bundles that a witness cosigned, and what somebody with the log's key might make of them. */
import { newKeyPair, parseSigningKey, type SigningKey } from "../../../src/evidence/signing.ts";
import { cosignatureLine, signCheckpoint } from "../../../src/evidence/witness/checkpoint.ts";
import { COSIGNATURE_TYPE, verifierKeyText } from "../../../src/evidence/witness/note.ts";
import { LedgerProofs } from "../../../src/evidence/witness/proofs.ts";
import type { JsonValue } from "../../../src/kernel/json/json.ts";
import { bundleOf } from "./bundles.ts";
import { type Dice, drafts, storeOf, upTo } from "./ledgers.ts";

const NAME = "witness.example/w";
const witness = parseSigningKey(newKeyPair().private_pem, "witness");
const stranger = parseSigningKey(newKeyPair().private_pem, "stranger");
export const WITNESS = verifierKeyText({
  name: NAME,
  type: COSIGNATURE_TYPE,
  key: witness,
});

/** A history of `records` records; the first `size` are cosigned. */
async function cosigned(
  seed: number,
  key: SigningKey,
  size: number,
  records: number,
  by = witness,
): Promise<string> {
  const store = await storeOf(drafts(seed, records));
  const head = {
    origin: `svc/${key.key_id}`,
    size,
    root: await (await LedgerProofs.of(store)).root(size),
  };
  const [body] = signCheckpoint(head, key).split("\n\n");
  const line = cosignatureLine(`${body}\n`, NAME, by, 1_790_000_000);
  const kept = {
    ...head,
    name: NAME,
    key_id: by.key_id,
    seconds: 1_790_000_000,
    line,
  };
  await store.transact({
    run: (tx) => tx.put("meta", "witnesses", { w: kept } as unknown as JsonValue),
  });
  return bundleOf(store, key);
}

interface Carried {
  note: string;
  consistency: string[];
}

function changed(text: string, change: (carried: Carried) => JsonValue): string {
  const bundle = JSON.parse(text) as { checkpoints: Carried[] };
  return JSON.stringify({
    ...bundle,
    checkpoints: bundle.checkpoints.map(change),
  });
}

type Forge = (seed: number, key: SigningKey, dice: Dice) => Promise<string>;
const sizeFor = (seed: number) => 8 + (seed % 17);

export const witnessedBundle: Forge = (seed, key) => cosigned(seed, key, sizeFor(seed), sizeFor(seed));

/** None of them may pass with the witness demanded. */
export const WITNESS_TAMPERS: Readonly<Record<string, Forge>> = {
  "a stale witness": (seed, key, dice) =>
    cosigned(seed, key, 1 + upTo(dice, sizeFor(seed) - 1), sizeFor(seed)),
  "a swapped key": (seed, key) => cosigned(seed, key, sizeFor(seed), sizeFor(seed), stranger),
  async "a fork"(seed, key, dice) {
    const other = JSON.parse(await witnessedBundle(seed + 17_000, key, dice)) as { checkpoints: JsonValue };
    return JSON.stringify({
      ...JSON.parse(await witnessedBundle(seed, key, dice)),
      checkpoints: other.checkpoints,
    });
  },
  async "no checkpoint"(seed, key, dice) {
    return JSON.stringify({
      ...JSON.parse(await witnessedBundle(seed, key, dice)),
      checkpoints: [],
    });
  },
  async "another size"(seed, key, dice) {
    const text = await witnessedBundle(seed, key, dice);
    return changed(text, ({ note, ...one }) => {
      const lines = note.split("\n");
      return {
        ...one,
        note: lines.with(1, String(Number(lines[1]) - 1)).join("\n"),
      };
    });
  },
  async "a node too many"(seed, key, dice) {
    const text = await witnessedBundle(seed, key, dice);
    return changed(text, (one) => ({
      ...one,
      consistency: [...one.consistency, "00".repeat(32)],
    }));
  },
  async "a changed cosignature"(seed, key, dice) {
    const text = await witnessedBundle(seed, key, dice);
    return changed(text, ({ note, ...one }) => {
      const lines = note.trimEnd().split("\n");
      const [dash, name, coded] = lines.at(-1)!.split(" ");
      const bytes = Buffer.from(coded!, "base64");
      const at = upTo(dice, bytes.length);
      bytes[at] = bytes[at]! ^ (1 << upTo(dice, 8));
      return {
        ...one,
        note: `${lines.with(-1, `${dash} ${name} ${bytes.toString("base64")}`).join("\n")}\n`,
      };
    });
  },
};
