/**
 * What a page of a search costs as the ledger grows: the same filters on a small ledger and on one of
 * `SVC_BENCH_RECORDS` records (default 1,000,000), in each store.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadSettings } from "../src/config/load.ts";
import type { RecordQuery } from "../src/govern/port/store.ts";
import { systemEnv } from "../src/kernel/env.ts";
import type { ServiceApp } from "../src/operations/app.ts";
import { openApp } from "../src/service/open-app.ts";
import type { BenchOptions } from "./main.ts";
import { openBenchDatabase } from "./postgres.ts";
import { median, type Row } from "./report.ts";

const LARGE = Number(process.env["SVC_BENCH_RECORDS"] ?? 1_000_000);
/** Large enough that both are read from the medium, not from what a young process still remembers. */
const SMALL = LARGE / 10;
const PAGE = 50;
const START_MS = 1_700_000_000_000;
const EVENTS = ["intended", "succeeded", "failed", "blocked"] as const;

/** Every filter names about as many records on a ledger of any size as fill a few pages. */
const PAGES: Record<string, RecordQuery> = {
  "the newest records": { order: "desc", limit: PAGE },
  "a run's records": { run_id: "run-77", order: "desc", limit: PAGE },
  "an actor's refusals": { actor: "bot-7", event: "blocked", order: "desc", limit: PAGE },
  "a tool in a minute": {
    tool: "crm.tool-3",
    since_ms: START_MS + 1_000,
    until_ms: START_MS + 61_000,
    order: "desc",
    limit: PAGE,
  },
};

async function fill({ core }: ServiceApp, upTo: number): Promise<void> {
  for (let { records: at } = await core.store.head(); at < upTo; at += 1_000) {
    const from = at;
    await core.store.transact({
      run(tx) {
        for (let i = from; i < Math.min(from + 1_000, upTo); i++) {
          tx.append({
            ts_ms: START_MS + i * 100,
            event: EVENTS[i % EVENTS.length]!,
            actor: `bot-${i % 20}`,
            run_id: `run-${Math.floor(i / 100)}`,
            run_seq: i % 100,
            tool: `crm.tool-${i % 10}`,
            reason: "growing the ledger",
          });
        }
      },
    });
  }
}

async function cost({ core }: ServiceApp, query: RecordQuery, rounds: number): Promise<number> {
  const measured: number[] = [];
  for (let round = 0; round < rounds + 1; round++) {
    const start = performance.now();
    for (let i = 0; i < 20; i++) await core.store.records(query);
    if (round > 0) measured.push((performance.now() - start) / 20);
  }
  return median(measured);
}

export async function run({ rounds }: BenchOptions): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), "svc-bench-"));
  writeFileSync(join(folder, "manifests.yaml"), "- {tool: crm.get, effect: read, permission: crm.read}\n");
  const database = await openBenchDatabase();
  const rows: Row[] = [];
  try {
    for (const store of ["files", "sqlite", "postgres"]) {
      const flags = {
        data: join(folder, store),
        manifests: join(folder, "manifests.yaml"),
        store,
        "database-url": database.url,
      };
      const settings = loadSettings({ flags, env: { SVC_LOG_LEVEL: "error" }, cwd: folder });
      const app = await openApp(settings, systemEnv);
      await fill(app, SMALL);
      const small = new Map<string, number>();
      for (const [what, query] of Object.entries(PAGES)) small.set(what, await cost(app, query, rounds));
      await fill(app, LARGE);
      for (const [what, query] of Object.entries(PAGES)) {
        rows.push({
          suite: "search",
          what: `${store}: ${what}, ${LARGE.toLocaleString("en")} records against ${SMALL.toLocaleString("en")}`,
          value: (await cost(app, query, rounds)) / small.get(what)!,
          unit: "x",
          goal: { at_most: 2 },
        });
      }
      await app.close();
    }
  } finally {
    await database.close();
    rmSync(folder, { recursive: true, force: true });
  }
  return rows;
}
