import { describe, expect, it } from "vitest";
import { rollbackBench } from "../../test/sim/rollback-fixture.ts";
import { otherProcess } from "../../test/support/process.ts";
import { verifies } from "../../test/support/verifies.ts";
import { watchLeases } from "../govern/lease.ts";
import { SERVICE_LIMITS } from "../kernel/limits.ts";
import {
  acquireLease,
  awaitLease,
  LeaseHeldError,
  LeaseLostError,
  releaseLease,
  renewLease,
  startHeartbeat,
  WORKER_LEASE_MS,
} from "./lease.ts";

const DAY_MS = 86_400_000;

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
    await expect(b.rollback()).rejects.toThrow("a rollback of run r1 is already in progress");
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
    const other = otherProcess(b.core);
    await other.outwait(SERVICE_LIMITS.lease_ms - 1);
    await expect(acquireLease(other, "r1")).rejects.toMatchObject({ code: "conflict" });
    await other.outwait(1);
    const next = await acquireLease(other, "r1");
    expect(next.epoch).toBe(dead.epoch + 1);
    await releaseLease(b.core, dead);
    await expect(acquireLease(b.core, "r1")).rejects.toMatchObject({ code: "conflict" });
  });

  it("lasts while its holder lives, and not longer", async () => {
    const b = await bench();
    const lease = await acquireLease(b.core, "r1");
    const heartbeat = startHeartbeat(b.core, lease);
    await b.env.advance(10 * SERVICE_LIMITS.lease_ms);
    await expect(acquireLease(b.core, "r1")).rejects.toMatchObject({ code: "conflict" });
    await heartbeat.stop();
    expect(b.env.sleepers).toBe(0);
    const other = otherProcess(b.core);
    await other.outwait();
    await acquireLease(other, "r1");
  });

  it("outlives trouble with the store", async () => {
    const b = await bench();
    const lease = await acquireLease(b.core, "r1");
    const transact = b.store.transact.bind(b.store);
    let down = true;
    b.store.transact = (unit) => (down ? Promise.reject(new Error("away")) : transact(unit));
    const heartbeat = startHeartbeat(b.core, lease);
    await b.env.advance(2 * SERVICE_LIMITS.lease_heartbeat_ms);
    down = false;
    await b.env.advance(2 * SERVICE_LIMITS.lease_heartbeat_ms);
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
    const other = otherProcess(b.core);
    await other.outwait();
    expect(await b.rollback({}, "r1", other)).toMatchObject({ compensated: [1, 0], complete: true });
    const records = (await b.trail()).length;
    wake();
    await expect(paused).rejects.toBeInstanceOf(LeaseLostError);
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
    const other = otherProcess(b.core);
    await other.outwait();
    await acquireLease(other, "r1");
    await b.env.advance(SERVICE_LIMITS.lease_heartbeat_ms);
    await expect(paused).rejects.toBeInstanceOf(LeaseLostError);
    expect(aborted).toBe(true);
    expect((await b.step(1)).status).toBe("compensating");
  });

  it(`is not taken over by a clock: one that is ahead, or one that jumps ${verifies("beyond.lease.own-clock")}`, async () => {
    for (const ahead_ms of [35_000, DAY_MS, -DAY_MS]) {
      const b = await bench();
      const lease = await acquireLease(b.core, "r1");
      const other = otherProcess(b.core, ahead_ms);
      const refused = await acquireLease(other, "r1").catch((error: unknown) => error);
      expect(refused).toBeInstanceOf(LeaseHeldError);
      expect(refused).toMatchObject({
        message:
          "a rollback of run r1 is already in progress; if its process has ended, try again in 30 s to take it over",
      });
      b.env.setNow(b.env.now() + DAY_MS);
      await expect(acquireLease(other, "r1")).rejects.toBeInstanceOf(LeaseHeldError);
      // The holder's clock was set back: a renewal counts all the same.
      b.env.setNow(b.env.now() - 2 * DAY_MS);
      await other.outwait(SERVICE_LIMITS.lease_ms - 1);
      await b.store.transact({ run: (tx) => renewLease(tx, lease, b.core.env.now()) });
      await other.outwait(1);
      await expect(acquireLease(other, "r1")).rejects.toBeInstanceOf(LeaseHeldError);
      await other.outwait(SERVICE_LIMITS.lease_ms);
      expect(await acquireLease(other, "r1")).toMatchObject({ epoch: lease.epoch + 1 });
    }
  });

  it(`is taken over only by a process that saw it unchanged itself ${verifies("beyond.lease.own-clock")}`, async () => {
    const b = await bench();
    await acquireLease(b.core, "r1");
    const first = otherProcess(b.core);
    await first.outwait();
    const second = otherProcess(first);
    await expect(acquireLease(second, "r1")).rejects.toBeInstanceOf(LeaseHeldError);
    await acquireLease(first, "r1");
    // The second process waited for the dead holder; this one is new.
    second.pass(SERVICE_LIMITS.lease_ms);
    await expect(acquireLease(second, "r1")).rejects.toBeInstanceOf(LeaseHeldError);
  });

  it("of an earlier version, which does not say how long it lasts, is waited for as a worker's", async () => {
    const b = await bench();
    const doc = { holder: "worker/0/key:pete", epoch: 3, expires_ms: 0 };
    await b.store.transact({ run: (tx) => tx.put("leases", "rollback/r1", doc) });
    const other = otherProcess(b.core);
    await other.outwait(SERVICE_LIMITS.lease_ms);
    await expect(acquireLease(other, "r1")).rejects.toBeInstanceOf(LeaseHeldError);
    await other.outwait(WORKER_LEASE_MS - SERVICE_LIMITS.lease_ms);
    expect(await acquireLease(other, "r1")).toMatchObject({ epoch: 4 });
  });

  it(`that cannot be renewed ends the work before anybody may take over ${verifies("beyond.lease.cut-off")}`, async () => {
    const b = await bench();
    const lease = await acquireLease(b.core, "r1");
    const other = otherProcess(b.core);
    await watchLeases(other);
    const { transact } = b.store;
    b.store.transact = () => new Promise(() => {});
    const heartbeat = startHeartbeat(b.core, lease);
    await b.env.advance(SERVICE_LIMITS.lease_ms - SERVICE_LIMITS.lease_heartbeat_ms);
    expect(heartbeat.lost.aborted).toBe(true);
    b.store.transact = transact.bind(b.store);
    await expect(acquireLease(other, "r1")).rejects.toBeInstanceOf(LeaseHeldError);
    await b.env.advance(SERVICE_LIMITS.lease_heartbeat_ms);
    await acquireLease(other, "r1");
  });

  it(`is waited for while its holder is silent, and is a conflict once it shows life ${verifies("beyond.lease.wait")}`, async () => {
    const b = await bench();
    await acquireLease(b.core, "r1");
    const other = otherProcess(b.core);
    const said: number[] = [];
    const looks: number[] = [];
    other.env.sleep = (ms) => {
      looks.push(ms);
      return other.outwait(ms);
    };
    const next = await awaitLease(other, "r1", (ms) => said.push(ms));
    expect(next.epoch).toBe(2);
    expect(said).toEqual([SERVICE_LIMITS.lease_ms]);
    expect(looks.reduce((sum, ms) => sum + ms, 0)).toBe(SERVICE_LIMITS.lease_ms);
    const third = otherProcess(b.core);
    third.env.sleep = async (ms) => {
      await third.outwait(ms);
      await b.store.transact({ run: (tx) => renewLease(tx, next, 0) });
    };
    await expect(awaitLease(third, "r1", () => {})).rejects.toBeInstanceOf(LeaseHeldError);
  });
});
