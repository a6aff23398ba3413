/**
 * What an intent costs as things grow: the ledger, the runs, the steps of its run, the keys. Each figure is
 * the time against the same store while it was small. `SVC_BENCH_RECORDS` sets how large (default 1,000,000).
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { App } from "../src/app/app.ts";
import { openLocalApp } from "../src/app/local.ts";
import { KeyRing } from "../src/auth/keys.ts";
import { loadSettings } from "../src/config/load.ts";
import { intentUnit } from "../src/engine/intent.ts";
import { newRun, openRunUnit } from "../src/engine/open-run.ts";
import { systemEnv } from "../src/kernel/env.ts";
import { sha256Hex } from "../src/kernel/hash.ts";
import type { Principal } from "../src/model/roles.ts";
import type { RunDoc } from "../src/model/run.ts";
import type { BenchOptions } from "./main.ts";
import { openBenchDatabase } from "./postgres.ts";
import { median, type Row } from "./report.ts";

const RECORDS = Number(process.env["SVC_BENCH_RECORDS"] ?? 1_000_000);
const RUNS = Math.min(100_000, RECORDS / 10);
const STEPS = Math.min(10_000, RECORDS / 10);
const GOAL = { at_most: 1.2 };
const BOT: Principal = {
  id: "key:bench",
  name: "bench",
  roles: ["agent"],
  groups: [],
  tenant: null,
  max_permissions: ["*"],
  allow_observe: true,
};

function open(folder: string, store: string, database: string): Promise<App> {
  const flags = {
    data: join(folder, store),
    manifests: join(folder, "manifests.yaml"),
    store,
    "database-url": database,
  };
  return openLocalApp(loadSettings({ flags, env: { SVC_LOG_LEVEL: "error" }, cwd: folder }), systemEnv);
}

const newOne = ({ core }: App): Promise<RunDoc> =>
  core.store.transact(openRunUnit(newRun(core, BOT, { permissions: ["crm.read"] })));

const intent = ({ core }: App, run: RunDoc) =>
  core.store.transact(
    intentUnit(
      core,
      BOT,
      run.run_id,
      { tool: "crm.get", args: { id: 1 }, reason: "bench", depends_on: [] },
      run,
    ),
  );

/** Milliseconds an intent, with sixteen at a time, over several runs of the measurement. */
async function cost(app: App, run: RunDoc, rounds: number): Promise<number> {
  const measured: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const start = performance.now();
    for (let i = 0; i < 20; i++) await Promise.all(Array.from({ length: 16 }, () => intent(app, run)));
    measured.push((performance.now() - start) / 320);
  }
  return median(measured);
}

async function growLedger({ core }: App, records: number): Promise<void> {
  const { records: have } = await core.store.head();
  for (let left = records - have; left > 0; left -= 1_000) {
    await core.store.transact({
      run(tx) {
        for (let i = 0; i < Math.min(1_000, left); i++) {
          tx.append({
            ts_ms: core.env.now(),
            event: "blocked",
            actor: "bench",
            tool: "crm.get",
            reason: "growing the ledger",
          });
        }
      },
    });
  }
}

async function growRuns(app: App, runs: number): Promise<void> {
  for (let done = 0; done < runs; done += 500)
    await Promise.all(Array.from({ length: 500 }, () => newOne(app)));
}

async function growSteps(app: App, run: RunDoc, steps: number): Promise<void> {
  for (let done = 0; done < steps; done += 250)
    await Promise.all(Array.from({ length: 250 }, () => intent(app, run)));
}

function lookups(keys: number, rounds: number): number {
  const entries = Array.from({ length: keys }, (_, i) => ({
    name: `k${i}`,
    roles: ["agent" as const],
    key_sha256: sha256Hex(`key-${i}`),
    max_permissions: [],
    groups: [],
    tenant: null,
    not_before: null,
    expires_at: null,
    disabled: false,
    allow_observe: false,
  }));
  const ring = new KeyRing(entries);
  const measured: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const start = performance.now();
    for (let i = 0; i < 20_000; i++) ring.find(`key-${(i * 7919) % keys}`, 0);
    measured.push(performance.now() - start);
  }
  return median(measured);
}

export async function run({ rounds }: BenchOptions): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), "svc-bench-"));
  writeFileSync(join(folder, "manifests.yaml"), "- {tool: crm.get, effect: read, permission: crm.read}\n");
  const database = await openBenchDatabase();
  const rows: Row[] = [];
  const add = (what: string, value: number, goal: Row["goal"] = GOAL) =>
    rows.push({ suite: "growth", what, value, unit: "x", goal });
  try {
    for (const kind of ["files", "sqlite", "postgres"]) {
      let app = await open(folder, kind, database.url);
      const first = await newOne(app);
      await growLedger(app, 1_000);
      await cost(app, first, 3);
      const small = await cost(app, await newOne(app), rounds);
      await growSteps(app, first, STEPS);
      add(
        `${kind}: intent in a run of ${STEPS.toLocaleString("en")} steps`,
        (await cost(app, first, rounds)) / small,
      );
      await growRuns(app, RUNS);
      add(
        `${kind}: intent beside ${RUNS.toLocaleString("en")} runs`,
        (await cost(app, await newOne(app), rounds)) / small,
      );
      await growLedger(app, RECORDS);
      add(
        `${kind}: intent on ${RECORDS.toLocaleString("en")} records`,
        (await cost(app, await newOne(app), rounds)) / small,
      );
      await app.close();
      const start = performance.now();
      app = await open(folder, kind, database.url);
      const large = performance.now() - start;
      const memory = process.memoryUsage().rss / 1_048_576;
      await app.close();
      const begin = performance.now();
      const empty = await open(
        mkdtempSync(join(folder, "empty-")).replace(folder, folder),
        kind,
        database.url,
      ).catch(() => null);
      const fresh = performance.now() - begin;
      await empty?.close();
      if (empty !== null && kind !== "postgres")
        add(`${kind}: start on it against an empty one`, large / fresh, { at_most: 2 });
      rows.push({
        suite: "growth",
        what: `${kind}: memory of this process, all loaded`,
        value: memory,
        unit: " MB",
        goal: null,
      });
    }
    add("key lookup among 100,000 against 10", lookups(100_000, rounds) / lookups(10, rounds));
  } finally {
    await database.close();
    rmSync(folder, { recursive: true, force: true });
  }
  return rows;
}
