/** The cost of an intent for the database, in CPU time and write-ahead log, next to our own CPU time. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { ownMs, parentOf, treeMs } from "./cpu.ts";
import { intent, newOne, open } from "./growth.ts";
import type { BenchOptions } from "./main.ts";
import { openBenchDatabase } from "./postgres.ts";
import { median, type Row } from "./report.ts";

const INTENTS = 6_400;
/** Batches about as large as 64 connections over HTTP form. */
const AT_ONCE = 25;

export async function run({ rounds }: BenchOptions): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), "svc-bench-"));
  writeFileSync(join(folder, "manifests.yaml"), "- {tool: crm.get, effect: read, permission: crm.read}\n");
  const database = await openBenchDatabase();
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  const ask = async (sql: string): Promise<number> =>
    Number(Object.values((await client.query<Record<string, unknown>>(sql)).rows[0]!)[0]);
  // A database elsewhere has its processes there.
  const server = process.env["SVC_TEST_DATABASE_URL"] ? 0 : parentOf(await ask("SELECT pg_backend_pid()"));
  const cost = { wal: [] as number[], cpu: [] as number[], own: [] as number[] };
  try {
    const app = await open(folder, "postgres", database.url);
    for (let round = 0; round <= rounds; round++) {
      const runs = await Promise.all(Array.from({ length: AT_ONCE }, () => newOne(app)));
      // The first change of a page behind a checkpoint logs it whole; each round begins in the same place.
      await client.query("CHECKPOINT");
      const wal = await ask("SELECT pg_current_wal_lsn() - '0/0'");
      const [cpu, own] = [server === 0 ? 0 : treeMs(server), ownMs()];
      for (let done = 0; done < INTENTS; done += AT_ONCE) await Promise.all(runs.map((r) => intent(app, r)));
      if (round === 0) continue;
      cost.own.push((1_000 * (ownMs() - own)) / INTENTS);
      if (server !== 0) cost.cpu.push((1_000 * (treeMs(server) - cpu)) / INTENTS);
      cost.wal.push(((await ask("SELECT pg_current_wal_lsn() - '0/0'")) - wal) / INTENTS);
    }
    await app.close();
  } finally {
    await client.end();
    await database.close();
    rmSync(folder, { recursive: true, force: true });
  }
  const row = (what: string, values: number[], unit: string): Row[] =>
    values.length === 0 ? [] : [{ suite: "database", what, value: median(values), unit, goal: null }];
  return [
    ...row("postgres: write-ahead log an intent", cost.wal, " bytes"),
    ...row("postgres: processor time of the database an intent", cost.cpu, " µs"),
    ...row("postgres: processor time of our process an intent, without HTTP", cost.own, " µs"),
  ];
}
