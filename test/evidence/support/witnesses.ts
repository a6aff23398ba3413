/** Witnesses to try things with: served over HTTP inside this process. */
import { afterAll } from "vitest";
import { newKeyPair, parseSigningKey, type SigningKey } from "../../../src/evidence/signing.ts";
import { logKey } from "../../../src/evidence/witness/checkpoint.ts";
import type { VerifierKey } from "../../../src/evidence/witness/note.ts";
import { WitnessState } from "../../../src/evidence/witness/state.ts";
import { LogWitness } from "../../../src/evidence/witness/witness.ts";
import { type ListeningServer, startListening } from "../../../src/http/lifecycle.ts";
import { createWitnessServer } from "../../../src/http/routes/witness.ts";
import { tempDir } from "../../support/tmp.ts";

export interface TestWitness extends ListeningServer {
  witness: LogWitness;
  /** Its verifier key. */
  key: string;
}

export function witnessOf(
  logs: ReadonlyMap<string, readonly VerifierKey[]>,
  more: { name?: string; state?: WitnessState; signing?: SigningKey } = {},
): LogWitness {
  const key = more.signing ?? parseSigningKey(newKeyPair().private_pem, "witness");
  return new LogWitness({
    name: more.name ?? "witness.example/w1",
    key,
    logs,
    state: more.state ?? new WitnessState(tempDir("witness")),
    now: () => 1_790_000_000_000,
  });
}

export async function servedWitness(
  log: SigningKey,
  origin = `svc/${log.key_id}`,
  name?: string,
): Promise<TestWitness> {
  const witness = witnessOf(new Map([[origin, [logKey(origin, log)]]]), name === undefined ? {} : { name });
  const served = await startListening(
    createWitnessServer(witness, () => {}),
    "127.0.0.1",
    0,
  );
  afterAll(() => served.stop());
  return { ...served, witness, key: witness.verifierKey };
}
