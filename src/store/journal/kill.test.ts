/** Processes that are killed at any moment, alone and with others, with checkpoints. */
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { seeded } from "../../../test/support/env.ts";
import { Hammer } from "../../../test/support/hammer.ts";
import { expectConsistent, work } from "../../../test/support/store-work.ts";
import { tempDir } from "../../../test/support/tmp.ts";
import { aMoment } from "../../../test/support/until.ts";
import { openFilesStore } from "../files/store.ts";
import { openSqliteStore } from "../sqlite/store.ts";

const ROUNDS = Number(process.env.SVC_TEST_KILLS ?? 2);
const running: Hammer[] = [];

afterEach(async () => {
  for (const hammer of running.splice(0)) await hammer.kill();
});

describe.each([
  ["files", openFilesStore],
  ["sqlite", openSqliteStore],
] as const)("%s, killed", (kind, open) => {
  it(`${ROUNDS} times next to another that continues, loses nothing`, {
    timeout: 600_000 + ROUNDS * 15_000,
  }, async () => {
    const random = seeded(11);
    const folder = join(tempDir(kind), "data");
    const acked: string[] = [];
    const steady = new Hammer(kind, folder, "steady");
    running.push(steady);
    await steady.untilAcked(1);
    for (let round = 0; round < ROUNDS; round++) {
      const doomed = new Hammer(kind, folder, `doomed${round}`);
      // A round without an answer would prove nothing.
      await doomed.untilAcked(1 + Math.floor(random() * 200));
      await aMoment(random() * 15);
      await doomed.kill();
      acked.push(...doomed.acked);
      await steady.untilAcked(5);
    }
    running.pop();
    await steady.kill();
    acked.push(...steady.acked);

    const warnings: string[] = [];
    const store = await open(folder, (message) => warnings.push(message));
    const units = await expectConsistent(store);
    for (const name of acked) expect(units.has(name), `${name} was acknowledged`).toBe(true);
    await work(store, "after");
    await store.ready();
    await store.close();
    const again = await open(folder, (message) => warnings.push(message));
    await expectConsistent(again);
    await again.close();
    expect(warnings.filter((message) => /never acknowledged|refuses/.test(message))).toEqual([]);
  });
});
