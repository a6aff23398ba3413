/** One of the servers that `scale` measures: an engine on PostgreSQL with agents that ask as fast as they are answered. */
import { readFileSync } from "node:fs";
import pg from "pg";
import type { Core } from "../src/engine/core.ts";
import { intentUnit } from "../src/engine/intent.ts";
import { newRun, openRunUnit } from "../src/engine/open-run.ts";
import { systemEnv } from "../src/kernel/env.ts";
import type { Principal } from "../src/model/roles.ts";
import { openPostgresStore, workOf } from "../src/store/postgres/store.ts";
import type { Work } from "../src/store/postgres/writer.ts";
import { principal, testEngine } from "../test/support/engine.ts";

export type ScaleWork =
  | { kind: "intents" | "contested"; seconds: number }
  | { kind: "neighbour"; seconds: number; flood: number };

export interface ScaleFigures {
  decided: number;
  elapsed_ms: number;
  cpu_us: number;
  /** Of all processes of the database that serve anyone, while this server measured. */
  database_cpu_us: number;
  work: Work;
  p99_ms: number;
}

const AGENTS = 64;
/** Of Linux, on every machine that Node runs on. */
const TICKS_A_SECOND = 100;
const OPENED_AT_ONCE = 256;
const MANIFESTS = "- {tool: crm.get, effect: read, permission: crm.read}";
const CONTESTED =
  "version: 1\nlimits:\n  - {id: all, match: {tool: crm.get}, per: global, max: 1000000, window: 1d}\n";

async function open(url: string, policy: string): Promise<Core> {
  const store = await openPostgresStore(url, () => {});
  return { ...testEngine({ manifests: MANIFESTS, policy }).core, env: systemEnv, store };
}

/** An agent of this tenant with a run of its own; each call of what is answered asks once. */
async function agent(core: Core, tenant: string | null): Promise<() => Promise<void>> {
  const who: Principal = { ...principal("bench"), tenant };
  const run = newRun(core, who, { permissions: ["crm.read"] });
  await core.store.transact(openRunUnit(run));
  const { run_id, principal: owner, actor, environment, salt } = run;
  const known = { run_id, principal: owner, actor, tenant, environment, salt };
  return async () => {
    const input = { tool: "crm.get", args: { id: 1 }, reason: "measuring", depends_on: [] };
    await core.store.transact(intentUnit(core, who, run_id, input, known));
  };
}

/** Microseconds that the database's live processes have taken; NaN where they are elsewhere, or this is no Linux. */
async function databaseCpu(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ pid: number }>(
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database()",
  );
  let ticks = 0;
  for (const { pid } of rows) {
    try {
      const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
        .replace(/^.*\) /, "")
        .split(" ");
      ticks += Number(fields[11]) + Number(fields[12]);
    } catch {
      return Number.NaN;
    }
  }
  return ticks * (1_000_000 / TICKS_A_SECOND);
}

async function measure(url: string, work: ScaleWork): Promise<ScaleFigures> {
  const core = await open(url, work.kind === "contested" ? CONTESTED : "version: 1");
  const until = (end: number, ask: () => Promise<void>, done: (ms: number) => void) =>
    (async () => {
      for (let now = performance.now(); now < end; now = performance.now()) {
        await ask();
        done(performance.now() - now);
      }
    })();
  let decided = 0;
  const waits: number[] = [];
  const flooding = work.kind === "neighbour" ? work.flood : AGENTS;
  const asks: (() => Promise<void>)[] = [];
  // Some at a time: thousands at once would run out of their time before anything is measured.
  while (asks.length < flooding) {
    const more = Math.min(OPENED_AT_ONCE, flooding - asks.length);
    asks.push(...(await Promise.all(Array.from({ length: more }, () => agent(core, "flood")))));
  }
  const neighbour = work.kind === "neighbour" ? await agent(core, "neighbour") : undefined;
  const looking = new pg.Client(url);
  await looking.connect();
  const database = await databaseCpu(looking);
  const before = { ...workOf(core.store)! };
  const cpu = process.cpuUsage();
  const began = performance.now();
  const end = began + work.seconds * 1_000;
  const all = asks.map((ask) => until(end, ask, () => decided++));
  if (neighbour !== undefined) all.push(until(end, neighbour, (ms) => waits.push(ms)));
  await Promise.allSettled(all);
  const elapsed_ms = performance.now() - began;
  const { user, system } = process.cpuUsage(cpu);
  const database_cpu_us = (await databaseCpu(looking)) - database;
  await looking.end();
  const after = workOf(core.store)!;
  const spent = Object.fromEntries(
    Object.entries(after).map(([name, value]) => [name, value - before[name as keyof Work]]),
  ) as unknown as Work;
  await core.store.close();
  waits.sort((a, b) => a - b);
  return {
    decided,
    elapsed_ms,
    cpu_us: user + system,
    database_cpu_us,
    work: spent,
    p99_ms: waits[Math.floor(waits.length * 0.99)] ?? 0,
  };
}

process.once("message", async (message) => {
  const { url, work } = message as { url: string; work: ScaleWork };
  process.send!(await measure(url, work), () => process.exit(0));
});
