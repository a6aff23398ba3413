/** The files and sqlite stores on a real file system that is full, frozen, read-only, or loses its power. */
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { seeded } from "../../../test/support/env.ts";
import { Hammer } from "../../../test/support/hammer.ts";
import { LoopDisk } from "../../../test/support/loop-disk.ts";
import { expectConsistent, work } from "../../../test/support/store-work.ts";
import { countTrials } from "../../../test/support/trials.ts";
import { until } from "../../../test/support/until.ts";
import type { StateStore } from "../../govern/port/store.ts";
import { openFilesStore } from "../files/store.ts";
import { openSqliteStore } from "../sqlite/store.ts";

const ROUNDS = Number(process.env.SVC_TEST_POWER_LOSSES ?? 2);
const disks: LoopDisk[] = [];
const stores: StateStore[] = [];

function disk(megabytes = 24): LoopDisk {
  const made = LoopDisk.make(megabytes);
  disks.push(made);
  return made;
}

afterEach(async () => {
  for (const store of stores.splice(0)) await store.close().catch(() => {});
  for (const made of disks.splice(0)) made.dispose();
});

const halt = (store: StateStore): Promise<unknown> =>
  store.transact({
    run: (tx) => {
      tx.append({ ts_ms: 1, event: "halted", actor: "operator" });
      tx.put("halts", "active", { active: [] });
    },
  });

const big = (store: StateStore, key: string): Promise<unknown> =>
  store.transact({ run: (tx) => tx.put("meta", key, "x".repeat(30_000)) });

describe.runIf(LoopDisk.isPossible).each([
  ["files", openFilesStore],
  ["sqlite", openSqliteStore],
] as const)("%s on a disk", (kind, open) => {
  const on = async (folder: string): Promise<StateStore> => {
    const store = await open(folder, () => {});
    stores.push(store);
    return store;
  };
  const refused = { code: "unavailable" };

  it("that is frozen: refused in time, the event loop continues, nothing stays of it", async () => {
    const frozen = disk();
    const store = await on(join(frozen.mount, "data"));
    await work(store, "a");
    let turns = 0;
    const timer = setInterval(() => turns++, 10);
    frozen.freeze();
    await expect(work(store, "b")).rejects.toMatchObject(refused);
    await expect(store.ready()).rejects.toMatchObject(refused);
    expect(turns).toBeGreaterThan(10);
    clearInterval(timer);
    expect(await store.get("meta", "total")).toBe(1);
    frozen.thaw();
    await until(() => work(store, "c").catch(() => undefined), "the store to take work again");
    expect([...(await expectConsistent(store)).keys()]).toEqual(["a", "c"]);
    await store.ready();
    countTrials(kind, "disk frozen", 1);
  });

  it("that is full: refused, but a halt is recorded; fine when there is room again", async () => {
    const full = disk();
    const store = await on(join(full.mount, "data"));
    await big(store, "before");
    full.fill();
    await expect(big(store, "no")).rejects.toMatchObject(refused);
    await expect(store.ready()).rejects.toMatchObject(refused);
    const [first, second, third] = await Promise.allSettled([
      big(store, "no"),
      halt(store),
      big(store, "no"),
    ]);
    expect([first.status, second.status, third.status]).toEqual(["rejected", "fulfilled", "rejected"]);
    await expect(big(store, "no")).rejects.toMatchObject(refused);
    await halt(store);
    expect(await store.get("meta", "no")).toBeUndefined();
    full.empty();
    await big(store, "again");
    await store.ready();
    expect((await store.head()).records).toBe(2);
    countTrials(kind, "disk full", 1);
  });

  it("that has become read-only: refused, and still read", async () => {
    const readOnly = disk();
    const store = await on(join(readOnly.mount, "data"));
    await work(store, "a", 3);
    readOnly.makeReadOnly();
    for (let i = 0; i < 3; i++) await expect(work(store, "b")).rejects.toMatchObject(refused);
    await expect(store.ready()).rejects.toMatchObject(refused);
    expect([...(await expectConsistent(store)).keys()]).toEqual(["a"]);
    countTrials(kind, "disk read-only", 1);
  });

  it(`that loses its power ${ROUNDS} times: nothing that was answered for is lost`, {
    timeout: 600_000 + ROUNDS * 20_000,
  }, async () => {
    const random = seeded(5);
    const acked: string[] = [];
    let current = disk(96);
    for (let round = 0; round < ROUNDS; round++) {
      const folder = join(current.mount, "data");
      const hammers = [new Hammer(kind, folder, `a${round}`), new Hammer(kind, folder, `b${round}`)];
      // A round without an answer would prove nothing.
      await Promise.all(hammers.map((hammer) => hammer.untilAcked(1 + Math.floor(random() * 300))));
      for (const hammer of hammers) hammer.pause();
      const after = current.afterPowerCut();
      disks.push(after);
      for (const hammer of hammers) {
        await hammer.kill();
        acked.push(...hammer.acked);
      }
      current = after;
      const store = await on(join(current.mount, "data"));
      const units = await expectConsistent(store);
      for (const name of acked) expect(units.has(name), `${name} was acknowledged`).toBe(true);
      await store.ready();
      await store.close();
    }
    countTrials(kind, "power lost on a real file system", ROUNDS);
  });
});
