/**
 * The power is cut at any moment: acknowledged and shown records are there, others are complete or missing, and the
 * store starts.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { seeded } from "../../../test/support/env.ts";
import { inlineHelper } from "../../../test/support/faulty-disk.ts";
import { PowerDisk } from "../../../test/support/power-disk.ts";
import { expectConsistent, work } from "../../../test/support/store-work.ts";
import { tempDir } from "../../../test/support/tmp.ts";
import { countTrials } from "../../../test/support/trials.ts";
import { filesJobs } from "./jobs.ts";
import { openFilesStore } from "./store.ts";

const CUTS = Number(process.env.SVC_TEST_POWER_CUTS ?? 40);
const bounds = { changes: 40, records: 100, bytes: 1_000_000 };
/** Calls of opening a new store; what happens before the first answer is of no interest here. */
const OPENING = 12;

function open(folder: string, warn: (message: string) => void, disk: PowerDisk) {
  return openFilesStore(folder, warn, { disk, bounds, helper: inlineHelper(() => filesJobs(folder)) });
}

interface Told {
  /** Units that their callers were answered for. */
  acked: number;
  /** Repeats that were answered with what the first one did. */
  repeats: number;
}

async function trial(seed: number): Promise<Told> {
  const random = seeded(seed);
  const root = tempDir("power");
  const folder = join(root, "data");
  const disk = new PowerDisk();
  const store = await open(folder, () => {}, disk);
  disk.cutAt = disk.calls + OPENING + Math.floor(random() * 150);
  const acked: string[] = [];
  const repeated: string[] = [];
  /** As a client that asks again under the same key while its first request is under way. */
  const repeat = async (name: string): Promise<void> => {
    await new Promise(setImmediate);
    const isThere = await store.transact({ run: (tx) => tx.get("idempotency", name) !== undefined });
    if (isThere) repeated.push(name);
  };
  const write = async (writer: number): Promise<void> => {
    for (let i = 0; !disk.isCut; i++) {
      const name = `w${writer}-${i}`;
      // One record each: of a longer unit whole lines are kept although its end is missing (tail.test.ts).
      const done = work(store, name);
      void repeat(name).catch(() => {});
      await done;
      acked.push(name);
    }
  };
  let shown = 0;
  const look = async (): Promise<void> => {
    while (!disk.isCut) {
      shown = (await store.head()).records;
      await new Promise(setImmediate);
    }
  };
  for (const writer of [0, 1, 2, 3]) void write(writer).catch(() => {});
  void look().catch(() => {});
  while (!disk.isCut) await new Promise((resolve) => setImmediate(resolve));

  // Twice: the second cut comes while the first one is being recovered from, or just after.
  let image = folder;
  let last = disk;
  for (let cut = 0; cut < 2; cut++) {
    const next = join(root, `after-${cut}`);
    mkdirSync(next);
    last.image(image, next, random);
    image = next;
    last = new PowerDisk();
    if (cut === 0) {
      last.cutAt = Math.floor(random() * 25);
      void open(image, () => {}, last).catch(() => {});
      for (let turn = 0; turn < 200 && !last.isCut; turn++)
        await new Promise((resolve) => setImmediate(resolve));
      last.cutAt = 0;
    }
  }
  const warnings: string[] = [];
  const back = await open(image, (message) => warnings.push(message), last);
  const units = await expectConsistent(back);
  for (const name of acked) expect(units.has(name), `${name} was acknowledged (seed ${seed})`).toBe(true);
  for (const name of repeated) expect(units.has(name), `${name} was repeated (seed ${seed})`).toBe(true);
  expect((await back.head()).records, `records were shown (seed ${seed})`).toBeGreaterThanOrEqual(shown);
  await work(back, "after");
  await back.ready();
  await expectConsistent(back);
  await back.close();
  return { acked: acked.length, repeats: repeated.length };
}

describe("a power cut", () => {
  it(`loses nothing that was answered for (${CUTS} cuts)`, { timeout: 600_000 + CUTS * 1_000 }, async () => {
    let counted = 0;
    let all_repeats = 0;
    for (let seed = 1; seed <= CUTS; seed++) {
      const { acked, repeats } = await trial(seed).catch((error) => {
        throw new Error(`seed ${seed}: ${(error as Error).message}`, { cause: error });
      });
      if (acked > 0) counted++;
      all_repeats += repeats;
    }
    // A cut before the first answer proves nothing.
    expect(counted).toBeGreaterThan(CUTS * 0.8);
    expect(all_repeats).toBeGreaterThan(CUTS);
    countTrials("files", "power cut, sectors lost in any order", counted);
    countTrials("files", "repeated keys, answered before a power cut", all_repeats);
  });
});
