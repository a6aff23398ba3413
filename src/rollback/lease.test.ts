import { describe, expect, it } from "vitest";
import { rollbackBench } from "../../test/sim/rollback-fixture.ts";
import { verifies } from "../../test/support/verifies.ts";
import { LIMITS } from "../kernel/limits.ts";
import { acquireLease, keepLease, LostLease, releaseLease } from "./lease.ts";

async function bench() {
  const b = rollbackBench();
  await b.openRun();
  await b.act("db.create");
  await b.act("db.create");
  return b;
}
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("the lease of a rollback", () => {
  it(`lets one in and the others not ${verifies("contract.workers.one-per-run", "contract.workers.lease")}`, async () => {
    const b = await bench();
    const lease = await acquireLease(b.core, "r1");
    await expect(acquireLease(b.core, "r1")).rejects.toMatchObject({ code: "conflict" });
    await expect(b.rollback()).rejects.toThrow("a rollback of run r1 is already under way");
    await releaseLease(b.core, lease);
    expect(await b.rollback()).toMatchObject({ compensated: [1, 0] });
  });

  it("of two rollbacks started together admits one", async () => {
    const b = await bench();
    const both = await Promise.allSettled([b.rollback(), b.rollback(), b.rollback()]);
    expect(both.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect(b.world.order).toEqual([1, 0]);
  });

  it(`is taken over when its holder is silent, and not before ${verifies("contract.workers.take-over")}`, async () => {
    const b = await bench();
    const dead = await acquireLease(b.core, "r1");
    b.env.setNow(b.env.now() + LIMITS.lease_ms - 1);
    await expect(acquireLease(b.core, "r1")).rejects.toMatchObject({ code: "conflict" });
    b.env.setNow(b.env.now() + 1);
    const next = await acquireLease(b.core, "r1");
    expect(next.epoch).toBe(dead.epoch + 1);
    await releaseLease(b.core, dead);
    await expect(acquireLease(b.core, "r1")).rejects.toMatchObject({ code: "conflict" });
  });

  it("lasts while its holder lives, and not longer", async () => {
    const b = await bench();
    const lease = await acquireLease(b.core, "r1");
    const heartbeat = keepLease(b.core, lease);
    await b.env.advance(10 * LIMITS.lease_ms);
    await expect(acquireLease(b.core, "r1")).rejects.toMatchObject({ code: "conflict" });
    await heartbeat.stop();
    expect(b.env.sleepers).toBe(0);
    b.env.setNow(b.env.now() + LIMITS.lease_ms + 1);
    await acquireLease(b.core, "r1");
  });

  it("outlives trouble with the store", async () => {
    const b = await bench();
    const lease = await acquireLease(b.core, "r1");
    const transact = b.store.transact.bind(b.store);
    let down = true;
    b.store.transact = (unit) => (down ? Promise.reject(new Error("away")) : transact(unit));
    const heartbeat = keepLease(b.core, lease);
    await b.env.advance(2 * LIMITS.lease_heartbeat_ms);
    down = false;
    await b.env.advance(2 * LIMITS.lease_heartbeat_ms);
    expect(heartbeat.lost.aborted).toBe(false);
    await heartbeat.stop();
  });

  it("fences: a holder that was paused and taken over writes nothing more", async () => {
    const b = await bench();
    let wake = (): void => {};
    const paused = b.rollback({
      compensator: (call) =>
        new Promise<void>((resolve) => {
          wake = () => resolve();
          void b.world.compensator(call);
        }),
    });
    while (b.world.calls.length === 0) await turn();
    b.env.setNow(b.env.now() + LIMITS.lease_ms + 1);
    expect(await b.rollback()).toMatchObject({ compensated: [1, 0], complete: true });
    const records = (await b.trail()).length;
    wake();
    await expect(paused).rejects.toBeInstanceOf(LostLease);
    expect(await b.trail()).toHaveLength(records);
    expect((await b.undoTrail()).filter((line) => line === "compensated 1")).toHaveLength(1);
  });

  it("stops the work of a holder that learns of the take-over", async () => {
    const b = await bench();
    let aborted = false;
    const paused = b.rollback({
      compensator: (_, signal) =>
        new Promise<void>((_resolve, reject) => {
          signal.addEventListener("abort", () => {
            aborted = true;
            reject(signal.reason);
          });
        }),
    });
    paused.catch(() => {});
    while ((await b.step(1)).status !== "compensating") await turn();
    b.env.setNow(b.env.now() + LIMITS.lease_ms + 1);
    await acquireLease(b.core, "r1");
    await b.env.advance(LIMITS.lease_heartbeat_ms);
    await expect(paused).rejects.toBeInstanceOf(LostLease);
    expect(aborted).toBe(true);
    expect((await b.step(1)).status).toBe("compensating");
  });
});
