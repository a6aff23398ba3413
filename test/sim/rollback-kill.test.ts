/**
 * SIGKILL at every point of a rollback's journal, on durable stores. Each run is rolled back by a process
 * that dies at the next point; a last process then completes them all.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { runCommand } from "../../src/child-process/run-command.ts";
import { checkTail } from "../../src/evidence/verify-ledger.ts";
import { intentUnit } from "../../src/govern/decide/intent.ts";
import { outcomeUnit } from "../../src/govern/decide/outcome.ts";
import { compensationKey } from "../../src/govern/document-keys.ts";
import type { StateStore } from "../../src/govern/port/store.ts";
import { newRun, openRunUnit } from "../../src/govern/runs/open-run.ts";
import { SERVICE_LIMITS } from "../../src/kernel/limits.ts";
import type { RollbackReport } from "../../src/rollback/plan/report.ts";
import { openStore } from "../../src/store/open.ts";
import { compiled } from "../support/compiled.ts";
import { principal, testEngine } from "../support/engine.ts";
import { tempDir } from "../support/tmp.ts";
import { countTrials } from "../support/trials.ts";
import { verifies } from "../support/verifies.ts";
import { TOOLS } from "./rollback-fixture.ts";
import type { ChildOrders } from "./rollback-kill-child.ts";

const CHILD = compiled("test/sim/rollback-kill-child.ts");
const STEPS = ["db.create", "crm.add", "pay.charge"];
const BOT = principal("bot");

/** A run of three steps that all can be undone. */
async function seed(store: StateStore, run_id: string): Promise<void> {
  const core = { ...testEngine({ manifests: TOOLS }).core, store };
  await store.transact(openRunUnit(newRun(core, BOT, { run_id, permissions: ["p"] })));
  for (const [n, tool] of STEPS.entries()) {
    await store.transact(
      intentUnit(core, BOT, run_id, { tool, args: { name: "x" }, reason: "kill", depends_on: [] }),
    );
    await store.transact(outcomeUnit(core, BOT, run_id, n, { status: "succeeded", result: { id: n } }));
  }
}

async function child(orders: ChildOrders) {
  const argv = [process.execPath, CHILD];
  const result = await runCommand(argv, {
    input: JSON.stringify(orders),
    timeout_ms: 500_000,
    cwd: process.cwd(),
  });
  if (result.signal === "SIGKILL" && result.cut_short === null) return "killed" as const;
  expect(result.stderr).toBe("");
  return JSON.parse(result.stdout) as { actions: number; reports: RollbackReport[] };
}

describe.each(["files", "sqlite"] as const)("a rollback on %s", (kind) => {
  it(`may be killed at any point; another completes it ${verifies("contract.workers.take-over")}`, async () => {
    const data = tempDir();
    const world = join(tempDir(), "world");
    const open = () => openStore({ store: kind, data, database_url: null, warn: () => {} });
    const orders: ChildOrders = {
      store: kind,
      data,
      manifests: TOOLS,
      world,
      ahead_ms: 0,
      watched_ms: 0,
      runs: ["clean"],
      kill_at: 0,
    };
    let store = await open();
    await seed(store, "clean");
    await store.close();
    const clean = await child(orders);
    if (clean === "killed") throw new Error("nobody gave the order");
    expect(clean.reports).toMatchObject([{ compensated: [2, 1, 0], complete: true }]);
    const points = Array.from({ length: clean.actions }, (_, i) => i + 1);
    expect(points.length).toBeGreaterThan(10);

    store = await open();
    for (const at of points) await seed(store, `r${at}`);
    await store.close();
    for (const at of points) expect(await child({ ...orders, runs: [`r${at}`], kill_at: at })).toBe("killed");
    const last = await child({
      ...orders,
      runs: points.map((at) => `r${at}`),
      ahead_ms: -60_000,
      watched_ms: SERVICE_LIMITS.lease_ms,
    });
    if (last === "killed") throw new Error("nobody gave the order");
    for (const report of last.reports)
      expect(report).toMatchObject({ failed: [], unverified: [], complete: true });

    store = await open();
    await checkAll(
      store,
      points.map((at) => `r${at}`),
      readFileSync(world, "utf8"),
    );
    await store.close();
    countTrials(kind, "SIGKILL at every point of a rollback", points.length);
  });
});

async function checkAll(store: StateStore, runs: string[], world: string): Promise<void> {
  const lines = await store.records({ limit: 100_000 });
  expect(checkTail(lines, 0).bad).toBeNull();
  const effects = world.trim().split("\n");
  for (const run_id of runs) {
    const trail = lines
      .map((line) => JSON.parse(line) as { run_id: string; event: string; step: number })
      .filter((record) => record.run_id === run_id);
    for (const n of STEPS.keys()) {
      expect((await store.get("steps", `${run_id}/${n}`))?.status).toBe("compensated");
      expect(trail.filter(({ event, step }) => event === "compensated" && step === n)).toHaveLength(1);
      const done = effects.filter((line) => line.startsWith(`${run_id} ${n} `));
      // Once, or once more with the same key where the first answer was lost.
      expect(done.length).toBeGreaterThanOrEqual(1);
      expect(done.length).toBeLessThanOrEqual(2);
      expect(new Set(done)).toEqual(new Set([`${run_id} ${n} ${compensationKey(run_id, n)}`]));
    }
  }
}
