/**
 * One, two and four servers on one PostgreSQL: what they decide together, how long the head is held for it, what is
 * decided again, and what a neighbour waits while a tenant floods. What more servers would do is computed from that.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import pg from "pg";
import { cpuOf } from "./cpu.ts";
import type { BenchOptions } from "./main.ts";
import { openBenchDatabase } from "./postgres.ts";
import { median, type Row } from "./report.ts";
import type { ScaleFigures, ScaleWork } from "./scale-server.ts";
import { HERE } from "./server.ts";

const SERVERS = [1, 2, 4] as const;
const suite = "scale";

/** Several servers at once, and what the database wrote for them. */
interface Together {
  decided: number;
  per_s: number;
  cpu_us: number;
  /** Of the time that passed, how much the head was held. */
  held: number;
  /** A record's part of it by the clock, and the server's CPU in it. */
  held_us: number;
  held_cpu_us: number;
  /** CPU of the database's processes for us a record; NaN where it is not on this machine, or that is no Linux. */
  database_cpu_us: number;
  again: number;
  wal_bytes: number;
}

const FIGURES: readonly (readonly [what: string, unit: string, pick: (one: Together) => number])[] = [
  ["decisions a second", "", ({ per_s }) => per_s],
  ["CPU of the servers a decision", " us", ({ cpu_us }) => cpu_us],
  ["their CPU under the head a record", " us", ({ held_cpu_us }) => held_cpu_us],
  ["CPU of the database a record", " us", ({ database_cpu_us }) => database_cpu_us],
  ["head held a record, commit included", " us", ({ held_us }) => held_us],
  ["share of the time that the head is held", "", ({ held }) => held],
  ["share of batches decided again", "", ({ again }) => again],
  ["WAL bytes a decision", " B", ({ wal_bytes }) => wal_bytes],
];

const BACKENDS = `SELECT array_agg(pid) AS answer FROM pg_stat_activity
  WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`;

type CpuOfEach = Map<number, number>;

function cpuOfEach(pids: Iterable<number>): CpuOfEach {
  const each: CpuOfEach = new Map();
  for (const pid of pids) {
    const cpu = cpuOf([pid]);
    if (cpu !== undefined) each.set(pid, cpu.all);
  }
  return each;
}

/** Of those that are there still: a reader's connection that had nothing to do ends by itself. */
function spentSince(before: CpuOfEach): number {
  const after = cpuOfEach(before.keys());
  if (after.size === 0) return Number.NaN;
  return [...after].reduce((sum, [pid, cpu]) => sum + cpu - before.get(pid)!, 0);
}

async function together(url: string, servers: number, work: ScaleWork): Promise<Together> {
  const client = new pg.Client(url);
  await client.connect();
  const ask = async <T>(sql: string) => (await client.query<{ answer: T }>(sql)).rows[0]!.answer;
  const wal = async () => Number(await ask<string>("SELECT pg_current_wal_lsn() - '0/0' AS answer"));
  try {
    const started = await Promise.all(Array.from({ length: servers }, () => start(url, work)));
    const before = await wal();
    const database = cpuOfEach(await ask<number[]>(BACKENDS));
    const all = await Promise.all(started.map(({ measure }) => measure()));
    // Looked at before they end, and their connections with them.
    const database_cpu_us = spentSince(database);
    await Promise.all(started.map(({ end }) => end()));
    const sum = (pick: (one: ScaleFigures) => number) => all.reduce((total, one) => total + pick(one), 0);
    const decided = sum(({ decided }) => decided);
    const elapsed_ms = Math.max(...all.map((one) => one.elapsed_ms));
    const records = sum(({ work }) => work.records);
    const batches = sum(({ work }) => work.ahead + work.again + work.under_lock);
    return {
      decided,
      per_s: (decided * 1_000) / elapsed_ms,
      cpu_us: sum(({ cpu_us }) => cpu_us) / decided,
      held: sum(({ work }) => work.held_ms) / elapsed_ms,
      held_us: (sum(({ work }) => work.held_ms) * 1_000) / records,
      held_cpu_us: sum(({ work }) => work.cpu_us) / records,
      database_cpu_us: database_cpu_us / records,
      again: sum(({ work }) => work.again) / batches,
      wal_bytes: ((await wal()) - before) / decided,
    };
  } finally {
    await client.end();
  }
}

/** A server that is warm. */
async function start(url: string, work: ScaleWork) {
  const child = fork(join(HERE, "scale-server.ts"), { execArgv: ["--import", "tsx"] });
  const said = () =>
    new Promise<unknown>((resolve, reject) => {
      child.once("message", resolve);
      child.once("exit", (code) => reject(new Error(`a measured server ended with code ${code}`)));
    });
  child.send({ url, work });
  await said();
  return {
    async measure() {
      child.send("measure");
      return (await said()) as ScaleFigures;
    },
    async end() {
      child.send("end");
      await once(child, "exit");
    },
  };
}

async function neighbour(url: string, seconds: number, flood: number): Promise<number> {
  const { measure, end } = await start(url, { kind: "neighbour", seconds, flood });
  const { p99_ms } = await measure();
  await end();
  return p99_ms;
}

export async function run({ rounds, seconds }: BenchOptions): Promise<Row[]> {
  const database = await openBenchDatabase();
  try {
    const rows: Row[] = [];
    const figure = (what: string, value: number, unit: string, goal: Row["goal"] = null) =>
      rows.push({ suite, what, value, unit, goal });
    const seen = new Map<number, Together[]>(SERVERS.map((servers) => [servers, []]));
    const contested: Together[] = [];
    const alone: number[] = [];
    const beside: number[] = [];
    for (let round = 0; round < rounds; round++) {
      for (const servers of SERVERS)
        seen.get(servers)!.push(await together(database.url, servers, { kind: "intents", seconds }));
      contested.push(await together(database.url, 2, { kind: "contested", seconds }));
      alone.push(await neighbour(database.url, seconds, 0));
      beside.push(await neighbour(database.url, seconds, 4_000));
    }
    const of = (servers: number, pick: (one: Together) => number) => median(seen.get(servers)!.map(pick));
    for (const servers of SERVERS) {
      const name = servers === 1 ? "1 server" : `${servers} servers`;
      for (const [what, unit, pick] of FIGURES) figure(`${name}: ${what}, measured`, of(servers, pick), unit);
    }
    const again = median(contested.map((one) => one.again));
    figure("2 servers on one global limit: share of batches decided again", again, "");
    figure("a neighbour's p99 on an idle server", median(alone), " ms");
    figure("a neighbour's p99 beside a tenant with 4,000 calls waiting", median(beside), " ms");
    const cpu = of(2, ({ cpu_us }) => cpu_us) / of(1, ({ cpu_us }) => cpu_us);
    figure("CPU a decision, two servers against one", cpu, "x", { at_most: 1.2 });
    model(of, figure);
    return rows;
  } finally {
    await database.close();
  }
}

/**
 * Each server decides what its core can, and all of them together what the head lets through: what a server does under
 * it when it decides ahead, and what writing and the commit take where nobody disturbs them. Where cores are short, the
 * clock counts waiting for one as well; then the costs in CPU, the sync apart, say more.
 */
function model(
  of: (servers: number, pick: (one: Together) => number) => number,
  figure: (what: string, value: number, unit: string, goal?: Row["goal"]) => void,
): void {
  const writing_us = of(1, ({ held_us, held_cpu_us }) => held_us - held_cpu_us);
  const through_head = 1_000_000 / (writing_us + of(2, ({ held_cpu_us }) => held_cpu_us));
  const costs = (servers: number) => of(servers, (one) => one.held_cpu_us + one.database_cpu_us);
  figure("head in CPU a record, computed: one server decides under it", costs(1), " us");
  figure("head in CPU a record, computed: two servers decide ahead", costs(2), " us");
  figure(
    "two servers against one by that, where cores are not the limit, computed",
    costs(1) / costs(2),
    "x",
    {
      at_least: 1.6,
    },
  );
  const first = 1_000_000 / of(1, ({ cpu_us }) => cpu_us);
  const each = 1_000_000 / of(2, ({ cpu_us }) => cpu_us);
  for (const servers of [1, 2, 4, 8]) {
    const by_cores = servers === 1 ? first : servers * each;
    const what = `${servers} servers with a core each, computed: by their cores, and by the head`;
    figure(`${what} (cores)`, by_cores, " a second");
    figure(`${what} (head)`, through_head, " a second");
  }
}
