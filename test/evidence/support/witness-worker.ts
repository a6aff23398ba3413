/** A witness that cosigns one log after the other as fast as it can, and says each answer at once, until it is killed. */
import { readFileSync, writeSync } from "node:fs";
import { parseSigningKey } from "../../../src/evidence/signing.ts";
import { logKey, parseCheckpoint, signCheckpoint } from "../../../src/evidence/witness/checkpoint.ts";
import { requestBody } from "../../../src/evidence/witness/client.ts";
import { LedgerProofs } from "../../../src/evidence/witness/proofs.ts";
import { WitnessState } from "../../../src/evidence/witness/state.ts";
import { LogWitness } from "../../../src/evidence/witness/witness.ts";
import { sha256Hex } from "../../../src/kernel/hash.ts";
import { drafts, storeOf } from "./ledgers.ts";

const [folder, keyFile, count] = process.argv.slice(2) as [string, string, string];
const key = parseSigningKey(readFileSync(keyFile, "utf8"), keyFile);
const origins = Array.from({ length: Number(count) }, (_, i) => `example.com/${i}`);
const logs = new Map(origins.map((origin) => [origin, [logKey(origin, key)]]));
const witness = new LogWitness({ name: "w", key, logs, state: new WitnessState(folder), now: Date.now });
const proofs = await LedgerProofs.of(await storeOf(drafts(4, 30)));

for (let n = 0; ; n++) {
  const origin = origins[n % origins.length]!;
  const last = parseCheckpoint(witness.checkpointOf(sha256Hex(origin)) ?? "");
  const old = typeof last === "string" ? 0 : last.size;
  const size = Math.min(30, old + 1);
  const note = signCheckpoint({ origin, size, root: await proofs.root(size) }, key);
  const body = requestBody(old, await proofs.consistency(old, size), note);
  const { status, text } = witness.addCheckpoint(Buffer.from(body));
  if (status !== 200) throw new Error(`${status} ${text}`);
  writeSync(1, `${origin} ${size}\n`);
}
