/** Group commit against one durable transaction a record, on each store, with 64 writers. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { StateStore, UnitOfWork } from "../src/govern/port/store.ts";
import { openStore } from "../src/store/open.ts";
import type { BenchOptions } from "./main.ts";
import { openBenchDatabase } from "./postgres.ts";
import { alternate, type Row, ratio } from "./report.ts";

const WRITERS = 64;
const KINDS = ["files", "sqlite", "postgres"] as const;

/** The shape of an intent: one record and three documents. */
function unit(n: number): UnitOfWork<void> {
  const key = `bench/${n}`;
  return {
    needs: [["runs", "bench"]],
    run(tx) {
      tx.get("meta", "bench");
      tx.append({
        ts_ms: n,
        event: "intended",
        actor: "bench",
        tool: "bench.tool",
        step: n,
        reason: "measuring",
      });
      tx.put("meta", `${key}/a`, { n, text: "a step of a run, about as large as one" });
      tx.put("meta", `${key}/b`, { n });
      tx.put("meta", "bench", { n });
    },
  };
}

async function measure(store: StateStore, ms: number, writers: number): Promise<number> {
  let n = Math.floor(performance.now() * 1_000);
  let done = 0;
  const start = performance.now();
  const writer = async () => {
    while (performance.now() - start < ms) {
      await store.transact(unit(n++));
      done++;
    }
  };
  await Promise.all(Array.from({ length: writers }, writer));
  return (done * 1_000) / (performance.now() - start);
}

export async function run({ rounds, seconds }: BenchOptions): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), "svc-bench-"));
  const database = await openBenchDatabase();
  const rows: Row[] = [];
  try {
    for (const kind of KINDS) {
      const store = await openStore({
        store: kind,
        data: join(folder, kind),
        database_url: database.url,
        warn: () => {},
      });
      const speeds = await alternate(rounds, {
        grouped: () => measure(store, seconds * 300, WRITERS),
        // One writer at a time waits for every record: what a store without group commit does with any number.
        alone: () => measure(store, seconds * 300, 1),
      });
      rows.push({
        suite: "append",
        what: `${kind}: group commit with ${WRITERS} writers against one sync a record`,
        value: ratio(speeds.grouped, speeds.alone),
        unit: "x",
        goal: { at_least: 9 },
      });
      await store.close();
    }
  } finally {
    await database.close();
    rmSync(folder, { recursive: true, force: true });
  }
  return rows;
}
