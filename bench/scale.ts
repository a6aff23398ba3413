/**
 * One, two and four servers on one PostgreSQL: their decisions together, the time under the lock of the head, the share
 * decided again, and another tenant's wait during a burst. Figures for more servers are computed from that.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { runToolKey, slotKey } from "../src/govern/document-keys.ts";
import type { DocKey } from "../src/govern/port/store.ts";
import { PgSession } from "../src/store/postgres/connect/session.ts";
import { WRITER_SETTINGS } from "../src/store/postgres/connect/settings.ts";
import { FetchedDocs } from "../src/store/postgres/prefetch.ts";
import { fetchVersions } from "../src/store/postgres/round-trips.ts";
import { type Cpu, cpuOf } from "./cpu.ts";
import { load, type Running, serverFolder, svc } from "./http.ts";
import type { BenchOptions } from "./main.ts";
import { openBenchDatabase } from "./postgres.ts";
import { median, type Row } from "./report.ts";
import { AGENTS, type ScaleFigures, type ScaleWork } from "./scale-work.ts";
import { HERE } from "./server.ts";

const SERVERS = [1, 2, 4] as const;
const suite = "scale";
/** Over HTTP, of each server and round. */
const INTENTS = 2_000;

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
  /** CPU of the database's processes per record of ours; NaN where it is not on this machine, or that isn't Linux. */
  database_cpu_us: number;
  again: number;
  /** Documents that were read ahead of the head, a record. */
  fetched: number;
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
  ["documents read ahead a record", "", ({ fetched }) => fetched],
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

/** Of those that are there still: a reader's connection that had nothing to do ends on its own. */
function spentSince(before: CpuOfEach): number {
  const after = cpuOfEach(before.keys());
  if (after.size === 0) return Number.NaN;
  return [...after].reduce((sum, [pid, cpu]) => sum + cpu - before.get(pid)!, 0);
}

async function together(url: string, servers: readonly Server[]): Promise<Together> {
  const client = new pg.Client(url);
  await client.connect();
  const ask = async <T>(sql: string) => (await client.query<{ answer: T }>(sql)).rows[0]!.answer;
  const wal = async () => Number(await ask<string>("SELECT pg_current_wal_lsn() - '0/0' AS answer"));
  try {
    const before = await wal();
    const database = cpuOfEach(await ask<number[]>(BACKENDS));
    const all = await Promise.all(servers.map(({ measure }) => measure()));
    const database_cpu_us = spentSince(database);
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
      fetched: sum(({ work }) => work.fetched) / records,
      wal_bytes: ((await wal()) - before) / decided,
    };
  } finally {
    await client.end();
  }
}

interface Server {
  measure(): Promise<ScaleFigures>;
  end(): Promise<void>;
}

/** A warm server, which can be measured any number of times, alone and with others. */
async function start(url: string, work: ScaleWork): Promise<Server> {
  const child = fork(join(HERE, "scale-server.ts"), { execArgv: ["--import", "tsx"] });
  const ended = once(child, "exit");
  const early = ended.then(([code]) => {
    throw new Error(`a measured server ended with code ${code}`);
  });
  early.catch(() => undefined);
  const said = async () => {
    const [answer] = await Promise.race([once(child, "message"), early]);
    return answer;
  };
  child.send({ url, work });
  await said();
  return {
    async measure() {
      child.send("measure");
      return (await said()) as ScaleFigures;
    },
    async end() {
      child.disconnect();
      await ended;
    },
  };
}

/** Servers for the time that the work takes. */
async function beside<T>(
  url: string,
  works: readonly ScaleWork[],
  measure: (servers: readonly Server[]) => Promise<T>,
): Promise<T> {
  const servers = await Promise.all(works.map((work) => start(url, work)));
  try {
    return await measure(servers);
  } finally {
    await Promise.all(servers.map(({ end }) => end()));
  }
}

/** In turn, so that a slow minute of the machine hits one as well as four. */
async function eachInTurn(url: string, rounds: number, seconds: number): Promise<Map<number, Together[]>> {
  const seen = new Map<number, Together[]>(SERVERS.map((servers) => [servers, []]));
  const works = Array.from({ length: Math.max(...SERVERS) }, () => ({ kind: "intents" as const, seconds }));
  await beside(url, works, async (servers) => {
    for (let round = 0; round < rounds; round++)
      for (const count of SERVERS) seen.get(count)!.push(await together(url, servers.slice(0, count)));
  });
  return seen;
}

/** CPU time of an intent on the built servers, one alone and two together, in turn. */
async function overHttp(url: string, rounds: number): Promise<{ one: Cpu[]; two: Cpu[] }> {
  const folder = serverFolder();
  const both = await svc(2, "postgres", folder, url);
  const first: Running = { ...both, ports: both.ports.slice(0, 1), pids: both.pids.slice(0, 1) };
  const spent = { one: [] as Cpu[], two: [] as Cpu[] };
  try {
    // By number, not by time: on a busy machine a time is over before the code is warm.
    await load(both, { intents: 4_000 }, 128);
    for (let round = 0; round < rounds; round++) {
      for (const [servers, into] of [[first, spent.one] as const, [both, spent.two] as const]) {
        const { cpu } = await load(servers, { intents: INTENTS }, 64 * servers.ports.length);
        if (cpu !== undefined) into.push(cpu);
      }
    }
    return spent;
  } finally {
    await both.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

const READINGS = 200;

/** What the database spends on a document when it is read ahead: those of a call, over and over. */
async function readingAhead(url: string): Promise<number> {
  const { signal } = new AbortController();
  const session = await PgSession.open(url, { signal, settings: WRITER_SETTINGS });
  try {
    const { rows } = await session.client.query<{ key: string }>(
      `SELECT key FROM svc_docs WHERE tbl = 'runs' ORDER BY sort DESC LIMIT ${AGENTS}`,
    );
    const keys = rows.flatMap(({ key }): DocKey[] => [
      ["runs", key],
      ["approval_slots", slotKey(key, "crm.get", "")],
      ["run_tools", runToolKey(key, "crm.get")],
    ]);
    const read = () => fetchVersions(session, keys, new FetchedDocs());
    await read();
    const before = cpuOfEach([session.processId]);
    await repeated(READINGS, read);
    return spentSince(before) / READINGS / keys.length;
  } finally {
    await session.end();
  }
}

const repeated = async <T>(rounds: number, measure: () => Promise<T>): Promise<T[]> => {
  const all: T[] = [];
  for (let round = 0; round < rounds; round++) all.push(await measure());
  return all;
};

const p99 = async (url: string, rounds: number, work: ScaleWork): Promise<number> =>
  beside(url, [work], async ([server]) =>
    median((await repeated(rounds, server!.measure)).map(({ p99_ms }) => p99_ms)),
  );

export async function run({ rounds, seconds }: BenchOptions): Promise<Row[]> {
  const database = await openBenchDatabase();
  try {
    const rows: Row[] = [];
    const figure = (what: string, value: number, unit: string, goal: Row["goal"] = null) =>
      rows.push({ suite, what, value, unit, goal });
    const { url } = database;
    const seen = await eachInTurn(url, rounds, seconds);
    const contested = await beside(
      url,
      [1, 2].map(() => ({ kind: "contested" as const, seconds })),
      (two) => repeated(rounds, () => together(url, two)),
    );
    const alone = await p99(url, rounds, { kind: "neighbour", seconds, flood: 0 });
    const flooded = await p99(url, rounds, { kind: "neighbour", seconds, flood: 4_000 });
    const of = (servers: number, pick: (one: Together) => number) => median(seen.get(servers)!.map(pick));
    for (const servers of SERVERS) {
      const name = servers === 1 ? "1 server" : `${servers} servers`;
      for (const [what, unit, pick] of FIGURES) figure(`${name}: ${what}, measured`, of(servers, pick), unit);
    }
    const again = median(contested.map((one) => one.again));
    figure("2 servers on one global limit: share of batches decided again", again, "");
    figure("a neighbour's p99 on an idle server", alone, " ms");
    figure("a neighbour's p99 beside a tenant with 4,000 calls waiting", flooded, " ms");
    const cpu = of(2, ({ cpu_us }) => cpu_us) / of(1, ({ cpu_us }) => cpu_us);
    figure("CPU a decision, two servers against one", cpu, "x", { at_most: 1.2 });
    const { one, two } = await overHttp(url, rounds);
    const http = (spent: readonly Cpu[], part: keyof Cpu) => median(spent.map((cpu) => cpu[part]));
    figure("1 server: its CPU an intent over HTTP, measured", http(one, "all"), " us");
    figure("2 servers: their CPU an intent over HTTP, measured", http(two, "all"), " us");
    const ratio = http(two, "all") / http(one, "all");
    figure("CPU an intent over HTTP, two servers against one", ratio, "x", { at_most: 1.2 });
    const reading_us = await readingAhead(url);
    figure("CPU of the database for reading a document ahead, measured", reading_us, " us");
    const reading = reading_us * of(2, ({ fetched }) => fetched);
    model(of, { one: http(one, "main"), two: http(two, "main"), reading }, figure);
    return rows;
  } finally {
    await database.close();
  }
}

/**
 * Costs in CPU, without the sync, on a machine that has a core for each server and enough for the database. One server works
 * batch after batch, its thread and the database in turn. Of two, one decides while the other writes. Only the work under the
 * lock of the head excludes the other: the server's part of it, and everything that the database does except to read ahead.
 */
function model(
  of: (servers: number, pick: (one: Together) => number) => number,
  us: { one: number; two: number; reading: number },
  figure: (what: string, value: number, unit: string, goal?: Row["goal"]) => void,
): void {
  const database = (servers: number) => of(servers, ({ database_cpu_us }) => database_cpu_us);
  const head = (servers: number) => database(servers) + of(servers, ({ held_cpu_us }) => held_cpu_us);
  const ahead = head(2) - us.reading;
  const alone = us.one + database(1);
  const beside = us.two + database(2);
  figure("head in CPU a record, computed: one server decides under it", head(1), " us");
  figure("head in CPU a record, computed: two servers decide ahead", ahead, " us");
  for (const servers of [1, 2, 4, 8]) {
    const a_decision = servers === 1 ? alone : Math.max(beside / servers, ahead);
    figure(`${servers} servers with a core each, computed`, 1_000_000 / a_decision, " a second");
  }
  figure("two servers against one by that, computed", alone / Math.max(beside / 2, ahead), "x", {
    at_least: 1.6,
  });
}
