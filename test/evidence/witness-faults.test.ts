/**
 * A witness that loses its power or is killed: it remembers every answer, and cosigns no second history.
 * SVC_WITNESS_KILLS=100 kills it so often.
 */
import { spawn } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { describe, expect, it, onTestFinished } from "vitest";
import { newKeyPair, parseSigningKey } from "../../src/evidence/signing.ts";
import { logKey, parseCheckpoint, signCheckpoint } from "../../src/evidence/witness/checkpoint.ts";
import { requestBody } from "../../src/evidence/witness/client.ts";
import { LedgerProofs } from "../../src/evidence/witness/proofs.ts";
import { WitnessState } from "../../src/evidence/witness/state.ts";
import type { LogWitness } from "../../src/evidence/witness/witness.ts";
import { sha256Hex } from "../../src/kernel/hash.ts";
import { compiled } from "../support/compiled.ts";
import { seeded } from "../support/env.ts";
import { ROOT } from "../support/files.ts";
import { LoopDisk } from "../support/loop-disk.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";
import { drafts, storeOf } from "./support/ledgers.ts";
import { witnessOf } from "./support/witnesses.ts";

const KILLS = Number(process.env["SVC_WITNESS_KILLS"] ?? 1);
const LOGS = 1_000;
const SECTOR = 512;

const pem = newKeyPair().private_pem;
const key = parseSigningKey(pem, "log");
const origins = (count: number) => Array.from({ length: count }, (_, i) => `example.com/${i}`);
const witnessAt = (state: WitnessState, count: number): LogWitness =>
  witnessOf(new Map(origins(count).map((origin) => [origin, [logKey(origin, key)]])), {
    state,
    signing: key,
  });
const histories = Promise.all([4, 5].map(async (seed) => LedgerProofs.of(await storeOf(drafts(seed, 30)))));

async function submit(witness: LogWitness, origin: string, old: number, size: number, from: LedgerProofs) {
  const note = signCheckpoint({ origin, size, root: await from.root(size) }, key);
  return witness.addCheckpoint(Buffer.from(requestBody(old, await from.consistency(old, size), note)));
}

function sizeOf(witness: LogWitness, origin: string): number {
  const last = parseCheckpoint(witness.checkpointOf(sha256Hex(origin)) ?? "");
  return typeof last === "string" ? 0 : last.size;
}

/** That the witness remembers all that was answered, and does not cosign another history of one of the logs. */
async function assertKept(
  witness: LogWitness,
  answered: ReadonlyMap<string, number>,
  nth: number,
): Promise<void> {
  for (const [origin, size] of answered) expect(sizeOf(witness, origin)).toBeGreaterThanOrEqual(size);
  const one = [...answered.keys()][nth % Math.max(1, answered.size)];
  if (one === undefined) return;
  const old = sizeOf(witness, one);
  const [, other] = await histories;
  expect((await submit(witness, one, old, Math.min(30, old + 1), other!)).status).not.toBe(200);
}

it("remembers what it answered when the power is cut at any sector of what it wrote", async () => {
  verifies("beyond.witness.power");
  const [proofs] = await histories;
  const folder = tempDir("witness-power");
  const state = new WitnessState(folder);
  const witness = witnessAt(state, 3);
  const log = join(folder, "witness.db-wal");
  const answers: { origin: string; size: number; written: number }[] = [];
  for (let n = 0; n < 12; n++) {
    const origin = origins(3)[n % 3]!;
    const old = sizeOf(witness, origin);
    expect((await submit(witness, origin, old, old + 1 + (n % 4), proofs!)).status).toBe(200);
    answers.push({ origin, size: sizeOf(witness, origin), written: statSync(log).size });
  }
  const bytes = readFileSync(log);
  let cuts = 0;
  for (let at = answers[0]!.written; at <= bytes.length; at += SECTOR) {
    const after = join(folder, `cut-${cuts}`);
    mkdirSync(after);
    copyFileSync(join(folder, "witness.db"), join(after, "witness.db"));
    // Unsynced bytes are missing or zeros.
    const left =
      cuts % 2 === 0
        ? bytes.subarray(0, at)
        : Buffer.concat([bytes.subarray(0, at), Buffer.alloc(bytes.length - at)]);
    writeFileSync(join(after, "witness.db-wal"), left);
    const kept = new WitnessState(after);
    const known = answers.filter(({ written }) => written <= at);
    await assertKept(witnessAt(kept, 3), new Map(known.map(({ origin, size }) => [origin, size])), cuts);
    kept.close();
    cuts++;
  }
  expect(cuts).toBeGreaterThan(50);
  state.close();
});

describe.runIf(LoopDisk.isPossible)("a witness on a separate disk", () => {
  it("has on the disk what it answers, whenever the power goes", async () => {
    verifies("beyond.witness.power");
    const disk = LoopDisk.make();
    onTestFinished(() => disk.dispose());
    const [proofs] = await histories;
    const witness = witnessAt(new WitnessState(join(disk.mount, "state")), 3);
    const answered = new Map<string, number>();
    for (let n = 0; n < 4; n++) {
      const origin = origins(3)[n % 3]!;
      const old = sizeOf(witness, origin);
      expect((await submit(witness, origin, old, old + 1 + n, proofs!)).status).toBe(200);
      answered.set(origin, old + 1 + n);
      const after = disk.afterPowerCut();
      onTestFinished(() => after.dispose());
      const kept = new WitnessState(join(after.mount, "state"));
      await assertKept(witnessAt(kept, 3), answered, n);
      kept.close();
    }
  });
});

/** Runs a witness until it has given this many answers, and kills it. */
async function killed(
  folder: string,
  keyFile: string,
  after: number,
  tell: (line: string) => void,
): Promise<void> {
  const worker = compiled("test/evidence/support/witness-worker.ts");
  const child = spawn(process.execPath, [worker, folder, keyFile, String(LOGS)], {
    cwd: ROOT,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = new Promise((resolve) => child.once("exit", (_, signal) => resolve(signal)));
  let told = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    tell(line);
    if (++told === after) child.kill("SIGKILL");
  }
  expect(await ended).toBe("SIGKILL");
}

it(
  "remembers what it answered for a thousand logs when it is killed",
  async () => {
    verifies("beyond.witness.crash");
    const folder = tempDir("witness-kills");
    const keyFile = join(folder, "log.key");
    writeFileSync(keyFile, pem, { mode: 0o600 });
    const answered = new Map<string, number>();
    const dice = seeded(7);
    for (let n = 0; n < KILLS; n++) {
      await killed(join(folder, "state"), keyFile, 1 + Math.floor(dice() * 2 * LOGS), (line) => {
        const [origin, size] = line.split(" ");
        // The last line may have been cut off with its witness.
        if (/^\d+$/.test(size ?? "")) answered.set(origin!, Number(size));
      });
      const state = new WitnessState(join(folder, "state"));
      await assertKept(witnessAt(state, LOGS), answered, n);
      state.close();
    }
    if (KILLS > 1)
      console.log(
        `${KILLS} kills, ${answered.size} logs, ${[...answered.values()].reduce((a, b) => a + b, 0)} answers`,
      );
  },
  120_000 + KILLS * 60_000,
);
