/**
 * Two processes on one store whose times of day differ, on every kind of store: while the first runs an undo, the
 * second does not; when the first is gone, the second completes the rollback, and the first writes nothing more.
 */
import { describe, expect, it } from "vitest";
import { intentUnit } from "../../src/govern/decide/intent.ts";
import { outcomeUnit } from "../../src/govern/decide/outcome.ts";
import type { StateStore } from "../../src/govern/port/store.ts";
import { newRun, openRunUnit } from "../../src/govern/runs/open-run.ts";
import { SERVICE_LIMITS } from "../../src/kernel/limits.ts";
import { resumeJobs, startJob } from "../../src/rollback/job.ts";
import { LeaseHeldError } from "../../src/rollback/lease.ts";
import type { CompensationCall } from "../../src/rollback/ports.ts";
import { executeRollback } from "../../src/rollback/undo/execute.ts";
import { MemoryStore } from "../../src/store/memory/store.ts";
import { openStore, type StoreKind } from "../../src/store/open.ts";
import { principal, testEngine } from "../support/engine.ts";
import { freshDatabase } from "../support/postgres.ts";
import { otherProcess } from "../support/process.ts";
import { tempDir } from "../support/tmp.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";
import { restless, TOOLS } from "./rollback-fixture.ts";

const BOT = principal("bot");
const DAY_MS = 86_400_000;
const CLOCKS_MS = [35_000, DAY_MS, -DAY_MS];

/** Two handles on one store, as two processes have them. */
async function openTwice(kind: StoreKind | "memory"): Promise<[StateStore, StateStore]> {
  if (kind === "memory") {
    const store = new MemoryStore();
    return [store, store];
  }
  const place = {
    store: kind,
    data: tempDir(),
    database_url: kind === "postgres" ? (await freshDatabase()).url : null,
    warn: () => {},
  };
  return [await openStore(place), await openStore(place)];
}

async function scene(stores: [StateStore, StateStore], run_id: string, ahead_ms: number) {
  const engine = testEngine({ manifests: TOOLS });
  const first = { ...engine.core, store: stores[0], env: restless(engine.env, []) };
  const second = otherProcess({ ...first, store: stores[1] }, ahead_ms);
  await first.store.transact(openRunUnit(newRun(first, BOT, { run_id, permissions: ["p"] })));
  for (const n of [0, 1]) {
    const input = { tool: "db.create", args: { name: "x" }, reason: "why", depends_on: [] };
    await first.store.transact(intentUnit(first, BOT, run_id, input));
    await first.store.transact(
      outcomeUnit(first, BOT, run_id, n, { status: "succeeded", result: { id: n } }),
    );
  }
  return { first, second, env: engine.env };
}

/** Undos that begin at once and end when they are allowed to. */
class SlowWorld {
  readonly calls: string[] = [];
  running = 0;
  most = 0;
  private readonly waiting: (() => void)[] = [];
  readonly compensator = async ({ step }: CompensationCall): Promise<void> => {
    this.calls.push(`step ${step}`);
    this.most = Math.max(this.most, ++this.running);
    await new Promise<void>((resolve) => this.waiting.push(resolve));
    this.running--;
  };
  finish(): void {
    for (const end of this.waiting.splice(0)) end();
  }
}

describe.each(["memory", "files", "sqlite", "postgres"] as const)("a rollback on %s", (kind) => {
  it(`is left alone by a process with another time of day while it is under way ${verifies("beyond.lease.stores")}`, async () => {
    const stores = await openTwice(kind);
    for (const [i, ahead_ms] of CLOCKS_MS.entries()) {
      const run_id = `live-${i}`;
      const { first, second, env } = await scene(stores, run_id, ahead_ms);
      const world = new SlowWorld();
      const { done } = await startJob(first, run_id, { by: "olga" }, { compensator: world.compensator });
      await until(() => world.calls.length === 1, "the first undo");
      const options = { actor: "pete", compensator: world.compensator };
      await expect(executeRollback(second, run_id, options)).rejects.toBeInstanceOf(LeaseHeldError);
      // The holder renews all the time: the second process never sees it silent for long enough.
      for (let beats = 0; beats < 8; beats++) {
        const before = (await first.store.get("leases", `rollback/${run_id}`))!.beat;
        await env.advance(SERVICE_LIMITS.lease_heartbeat_ms);
        await until(
          async () => (await second.store.get("leases", `rollback/${run_id}`))!.beat !== before,
          "the renewal",
        );
        await expect(executeRollback(second, run_id, options)).rejects.toBeInstanceOf(LeaseHeldError);
        expect(await resumeJobs(second, { compensator: world.compensator })).toEqual([]);
      }
      expect(world.calls).toEqual(["step 1"]);
      world.finish();
      await until(() => world.calls.length === 2, "the second undo");
      world.finish();
      expect(await done).toMatchObject({ state: "done", report: { compensated: [1, 0] } });
      expect([world.most, world.calls]).toEqual([1, ["step 1", "step 0"]]);
    }
    for (const store of new Set(stores)) await store.close();
  });

  it(`that was left behind is completed once, and its late holder writes nothing ${verifies("beyond.lease.left-behind", "beyond.lease.stores")}`, async () => {
    const stores = await openTwice(kind);
    for (const [i, ahead_ms] of CLOCKS_MS.entries()) {
      const run_id = `left-${i}`;
      const { first, second } = await scene(stores, run_id, ahead_ms);
      const frozen = new SlowWorld();
      const { done } = await startJob(first, run_id, { by: "olga" }, { compensator: frozen.compensator });
      await until(() => frozen.calls.length === 1, "the first undo");
      const calls: number[] = [];
      const tools = { compensator: async ({ step }: CompensationCall) => void calls.push(step) };
      expect(await resumeJobs(second, tools)).toEqual([]);
      second.pass(SERVICE_LIMITS.lease_ms);
      const [resumed] = await resumeJobs(second, tools);
      expect(await resumed?.done).toMatchObject({ state: "done", report: { compensated: [1, 0] } });
      const { records } = await second.store.head();
      frozen.finish();
      expect(await done).toBeNull();
      expect((await second.store.head()).records).toBe(records);
      expect([frozen.calls, calls]).toEqual([["step 1"], [1, 0]]);
      expect(await first.store.get("jobs", run_id)).toMatchObject({ state: "done" });
    }
    for (const store of new Set(stores)) await store.close();
  });
});
