/**
 * What an intent costs as things grow: the ledger, the runs, the steps of its run, the keys; and what a tenant's
 * counts and searches cost as its neighbours' runs and records grow. Each figure is the time against the same store while it was small.
 * `SVC_BENCH_RECORDS` sets how large (default 1,000,000).
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readEntry } from "../src/auth/key-entry.ts";
import { KeyRing } from "../src/auth/keys.ts";
import { loadSettings } from "../src/config/load.ts";
import { intentUnit } from "../src/govern/decide/intent.ts";
import type { IntentInput } from "../src/govern/decide/load-facts.ts";
import type { CallerPrincipal } from "../src/govern/roles.ts";
import { newRun, openRunUnit } from "../src/govern/runs/open-run.ts";
import type { RunDoc } from "../src/govern/runs/run.ts";
import { systemEnv } from "../src/kernel/env.ts";
import { sha256Hex } from "../src/kernel/hash.ts";
import type { ServiceApp } from "../src/operations/app.ts";
import { appFor } from "../src/operations/pipeline/access.ts";
import { approvalCounts } from "../src/operations/status.ts";
import { openApp } from "../src/service/open-app.ts";
import { countVisibleRecords } from "../src/store/tenant-store.ts";
import type { BenchOptions } from "./main.ts";
import { openBenchDatabase } from "./postgres.ts";
import { alternate, median, type Row, ratio } from "./report.ts";
import { freePort, residentMb, type ServerPlace, spawnServer, stopped, untilReady } from "./server.ts";

const RECORDS = Number(process.env["SVC_BENCH_RECORDS"] ?? 1_000_000);
const RUNS = Math.min(100_000, RECORDS / 10);
const STEPS = Math.min(10_000, RECORDS / 10);
const INTENTS = 5_000;
const SETTLE_MS = 1_500;
const GOAL = { at_most: 1.2 };
const KEY = { name: "bench", role: "agent", max_permissions: ["*"], key_sha256: sha256Hex("bench-key") };
export const BOT: CallerPrincipal = {
  id: "key:bench",
  name: "bench",
  roles: ["agent"],
  groups: [],
  tenant: null,
  tenant_only: false,
  max_permissions: ["*"],
  allow_observe: true,
};

export function open(
  folder: string,
  store: string,
  database: string | null,
  policy?: string,
): Promise<ServiceApp> {
  const flags = {
    ...(policy === undefined ? {} : { policy }),
    data: join(folder, store),
    manifests: join(folder, "manifests.yaml"),
    store,
    ...(database === null ? {} : { "database-url": database }),
  };
  return openApp(loadSettings({ flags, env: { SVC_LOG_LEVEL: "error" }, cwd: folder }), systemEnv);
}

export const newOne = ({ core }: ServiceApp, by = BOT): Promise<RunDoc> =>
  core.store.transact(openRunUnit(newRun(core, by, { permissions: ["crm.read"] })));

const ACME: CallerPrincipal = { ...BOT, id: "key:acme", name: "acme", tenant: "acme", tenant_only: true };

/** Milliseconds until a tenant of a hundred runs has its status. */
async function counting(app: ServiceApp): Promise<number> {
  const own = appFor(app, ACME);
  const took: number[] = [];
  for (let look = 0; look < 30; look++) {
    const start = performance.now();
    await Promise.all([
      countVisibleRecords(own.core.store),
      own.core.store.count("runs"),
      approvalCounts(own),
    ]);
    took.push(performance.now() - start);
  }
  return median(took);
}

/** Milliseconds until a tenant of a hundred runs has the newest page of its records, of all and of one event. */
async function searching(app: ServiceApp): Promise<number> {
  const { store } = appFor(app, ACME).core;
  const took: number[] = [];
  for (let look = 0; look < 30; look++) {
    const start = performance.now();
    for (const event of [undefined, "blocked"]) {
      const found = await store.records({ event, order: "desc", limit: 51 });
      if (found.length !== 51) throw new Error(`a page of ${found.length} records`);
    }
    took.push(performance.now() - start);
  }
  return median(took);
}

const CALL: IntentInput = { tool: "crm.get", args: { id: 1 }, reason: "bench", depends_on: [] };
export const intent = ({ core }: ServiceApp, run: RunDoc, call = CALL) =>
  core.store.transact(intentUnit(core, BOT, run.run_id, call, run));

/** Milliseconds an intent, with sixteen at a time: the median of many short looks, after what grew has settled. */
export async function cost(app: ServiceApp, run: RunDoc, rounds: number, before = () => {}): Promise<number> {
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  const measured: number[] = [];
  for (let look = 0; look < 10 * rounds; look++) {
    const start = performance.now();
    for (let i = 0; i < 10; i++) {
      const asked = Array.from({ length: 16 }, () => {
        before();
        return intent(app, run);
      });
      await Promise.all(asked);
    }
    measured.push((performance.now() - start) / 160);
  }
  return median(measured);
}

async function growLedger({ core }: ServiceApp, records: number, tenant = "globex"): Promise<void> {
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
            tenant,
          });
        }
      },
    });
  }
}

async function growRuns(app: ServiceApp, runs: number): Promise<void> {
  for (let done = 0; done < runs; done += 500)
    await Promise.all(Array.from({ length: 500 }, () => newOne(app)));
}

async function growSteps(app: ServiceApp, run: RunDoc, steps: number): Promise<void> {
  for (let done = 0; done < steps; done += 250)
    await Promise.all(Array.from({ length: 250 }, () => intent(app, run)));
}

/** Finds one key after the other among so many. */
function finder(keys: number): () => void {
  const entries = Array.from(
    { length: keys },
    (_, i) => readEntry({ name: `k${i}`, role: "agent", key_sha256: sha256Hex(`key-${i}`) }).entry!,
  );
  const ring = new KeyRing(entries);
  let i = 0;
  return () => void ring.find(`key-${(i++ * 7919) % keys}`, 0);
}

/** Milliseconds until its own server answers, and what it holds after so many intents. */
async function startOf(place: Omit<ServerPlace, "port">, intents = 0): Promise<{ ms: number; mb: number }> {
  const port = await freePort();
  const start = performance.now();
  const child = spawnServer({ ...place, port });
  try {
    await untilReady(port, child, 5);
    const ms = performance.now() - start;
    if (intents > 0) await ask(port, intents);
    return { ms, mb: residentMb(child) };
  } finally {
    await stopped(child);
  }
}

async function ask(port: number, intents: number): Promise<void> {
  const post = async (path: string, body: object): Promise<{ run_id?: string }> => {
    const answer = await fetch(`http://127.0.0.1:${port}/v1/${path}`, {
      method: "POST",
      headers: { authorization: "Bearer bench-key", "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return (await answer.json()) as { run_id?: string };
  };
  const { run_id } = await post("runs", { permissions: ["crm.read"] });
  for (let done = 0; done < intents; done += 50) {
    const one = { tool: "crm.get", args: { id: done }, reason: "bench" };
    await Promise.all(Array.from({ length: 50 }, () => post(`runs/${run_id}/intents`, one)));
  }
}

export async function run({ rounds }: BenchOptions): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), "svc-bench-"));
  writeFileSync(join(folder, "manifests.yaml"), "- {tool: crm.get, effect: read, permission: crm.read}\n");
  writeFileSync(join(folder, "keys.json"), JSON.stringify([KEY]), { mode: 0o600 });
  const database = await openBenchDatabase();
  const none = await openBenchDatabase();
  const rows: Row[] = [];
  const add = (what: string, value: number, goal: Row["goal"] = GOAL) =>
    rows.push({ suite: "growth", what, value, unit: "x", goal });
  try {
    for (const kind of ["files", "sqlite", "postgres"]) {
      const app = await open(folder, kind, database.url);
      const first = await newOne(app);
      await growLedger(app, 1_000);
      await cost(app, first, 3);
      const small = await cost(app, await newOne(app), rounds);
      await growSteps(app, first, STEPS);
      add(
        `${kind}: intent in a run of ${STEPS.toLocaleString("en")} steps`,
        (await cost(app, first, rounds)) / small,
      );
      for (let i = 0; i < 100; i++) await newOne(app, ACME);
      await growLedger(app, (await app.core.store.head()).records + 100, ACME.name);
      // Far enough behind that they are not among the newest, which are in memory.
      await growLedger(app, (await app.core.store.head()).records + 10_000);
      const [counted, searched] = [await counting(app), await searching(app)];
      await growRuns(app, RUNS);
      add(
        `${kind}: counts of a tenant beside ${RUNS.toLocaleString("en")} runs of others`,
        (await counting(app)) / counted,
        { at_most: 2 },
      );
      add(
        `${kind}: intent beside ${RUNS.toLocaleString("en")} runs`,
        (await cost(app, await newOne(app), rounds)) / small,
      );
      await growLedger(app, RECORDS);
      add(
        `${kind}: intent on ${RECORDS.toLocaleString("en")} records`,
        (await cost(app, await newOne(app), rounds)) / small,
      );
      add(
        `${kind}: a tenant's page of records beside ${RECORDS.toLocaleString("en")} of others`,
        (await searching(app)) / searched,
        { at_most: 2 },
      );
      if (kind === "files") {
        const few = await cost(app, await newOne(app), rounds, finder(10));
        const many = await cost(app, await newOne(app), rounds, finder(100_000));
        add("intent with one of 100,000 keys against 10", many / few);
      }
      await app.close();
      const place = { store: kind, folder, data: join(folder, kind), database: database.url };
      const nothing = { ...place, data: join(folder, `empty-${kind}`), database: none.url };
      const starts = await alternate(rounds, {
        large: () => startOf(place).then(({ ms }) => ms),
        empty: () => startOf(nothing).then(({ ms }) => ms),
      });
      add(`${kind}: start on it against an empty one`, ratio(starts.large, starts.empty), { at_most: 2 });
      rows.push({
        suite: "growth",
        what: `${kind}: memory of a server with all of it, after ${INTENTS.toLocaleString("en")} intents`,
        value: (await startOf(place, INTENTS)).mb,
        unit: " MB",
        goal: { at_most: 300 },
      });
    }
  } finally {
    await database.close();
    await none.close();
    rmSync(folder, { recursive: true, force: true });
  }
  const { things } = await import("./growth-things.ts");
  return [...rows, ...(await things(rounds))];
}
