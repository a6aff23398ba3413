/**
 * Whole requests: intents and outcomes per second over 64 keep-alive connections, every record durable before its
 * answer, against a plain `node:http` server that parses the same body and answers at once. Disk syncs are delayed
 * to one millisecond in the measured processes, so that runs on different disks compare. Next to the ratio is
 * the CPU time of a request, which other work on the machine does not change.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import autocannon from "autocannon";
import { sha256Hex } from "../src/kernel/hash.ts";
import { type Cpu, cpuOf } from "./cpu.ts";
import type { BenchOptions } from "./main.ts";
import { openBenchDatabase } from "./postgres.ts";
import { alternate, median, type Row, ratio } from "./report.ts";
import { freePort, HERE, spawnServer, stopped, untilReady } from "./server.ts";
import { overStream } from "./stream-load.ts";

const KEY = "bench-key";
const BODY = JSON.stringify({
  tool: "crm.get",
  args: { id: "c-1042", fields: ["name", "mail"] },
  reason: "look a customer up",
});
const OUTCOME = JSON.stringify({ status: "succeeded", result: { name: "Ada", mail: "a@example.org" } });
const KINDS = ["files", "sqlite", "postgres"] as const;
const GOALS = {
  one: { files: 0.5, sqlite: 0.45, postgres: 0.42 },
  two: { files: 0.4, sqlite: 0.38, postgres: 0.35 },
};
/** A decision over one connection costs at most 1.2 times the plain server's empty answer. */
const STREAM_GOAL = 0.83;
const LANES = 64;
const WARM_UP = 20_000;
const CPU_GOALS = { main: 150, all: 220 };

export interface Running {
  ports: number[];
  run_ids: (string | null)[];
  pids: number[];
  /** Of each process: how many steps were accepted, and how many outcomes reported. */
  accepted: number[];
  reported: number[];
  stop(): Promise<void>;
}

/** What a load came to: requests a second, and processor time of the measured processes for one request. */
export interface Load {
  rate: number;
  cpu: Cpu | undefined;
}

async function start(
  count: number,
  spawnOne: (port: number) => ChildProcess,
  run: boolean,
): Promise<Running> {
  const ports: number[] = [];
  const run_ids: (string | null)[] = [];
  const children: ChildProcess[] = [];
  for (let i = 0; i < count; i++) {
    const port = await freePort();
    const child = spawnOne(port);
    children.push(child);
    await untilReady(port, child);
    ports.push(port);
    run_ids.push(run ? await openRun(port) : null);
  }
  return {
    ports,
    run_ids,
    pids: children.map(({ pid }) => pid!),
    accepted: ports.map(() => 0),
    reported: ports.map(() => 0),
    async stop() {
      await Promise.all(children.map(stopped));
    },
  };
}

async function openRun(port: number): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${port}/v1/runs`, {
    method: "POST",
    headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
    body: JSON.stringify({ permissions: ["crm.read"] }),
  });
  return ((await answer.json()) as { run_id: string }).run_id;
}

const slowSync = ["--import", join(HERE, "slow-sync.mjs")];

function ceiling(count: number): Promise<Running> {
  const one = (port: number) =>
    spawn(process.execPath, [join(HERE, "ceiling.mjs"), String(port)], { stdio: "ignore" });
  return start(count, one, false);
}

export function svc(count: number, kind: string, folder: string, database: string): Promise<Running> {
  const one = (port: number) =>
    spawnServer({ port, store: kind, data: join(folder, kind), folder, database, node: slowSync });
  return start(count, one, true);
}

/** Intents for so many seconds, so many of them from each process, or so many outcomes of accepted ones. */
type Wanted = { intents_for: number } | { intents: number } | { outcomes: number };

/** Connections to all processes together. */
export async function load(running: Running, wanted: Wanted, connections = 64): Promise<Load> {
  const { ports, pids, accepted } = running;
  const before = cpuOf(pids);
  const started = performance.now();
  const results = await Promise.all(
    ports.map((_, i) => autocannon(requestsOf(running, i, wanted, connections))),
  );
  const elapsed = (performance.now() - started) / 1_000;
  const after = cpuOf(pids);
  let answered = 0;
  for (const [i, result] of results.entries()) {
    const { non2xx, errors } = result;
    if (non2xx + errors > 0) throw new Error(`${non2xx} answers were not 2xx, ${errors} requests failed`);
    answered += result["2xx"];
    if (!("outcomes" in wanted)) accepted[i]! += result["2xx"];
  }
  return { rate: answered / elapsed, cpu: before && after && forEach(before, after, answered) };
}

const forEach = (before: Cpu, after: Cpu, answered: number): Cpu => ({
  main: (after.main - before.main) / answered,
  all: (after.all - before.all) / answered,
});

function requestsOf(
  { ports, run_ids, reported }: Running,
  i: number,
  wanted: Wanted,
  connections: number,
): autocannon.Options {
  const run = `/v1/runs/${run_ids[i] ?? "x"}`;
  const common = {
    url: `http://127.0.0.1:${ports[i]}${run}/intents`,
    method: "POST",
    headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
    connections: connections / ports.length,
    // A load of so many requests ends with a sample: one a second would round its time to whole seconds.
    sampleInt: 20,
  };
  if ("intents_for" in wanted) return { ...common, body: BODY, duration: wanted.intents_for };
  if ("intents" in wanted) return { ...common, body: BODY, amount: wanted.intents };
  const setupRequest = (request: autocannon.Request) => {
    request.path = `${run}/steps/${reported[i]!++}/outcome`;
    return request;
  };
  return { ...common, amount: wanted.outcomes, requests: [{ body: OUTCOME, setupRequest }] };
}

interface Contest {
  ratio: number;
  cpu: Cpu[];
  /** Of the plain server, whose one thread does all. */
  ceiling_us: number[];
}

async function contest(plain: Running, ours: Running, wanted: Wanted, rounds: number): Promise<Contest> {
  const cpu: Cpu[] = [];
  const ceiling_us: number[] = [];
  const speeds = await alternate(rounds, {
    ceiling: async () => {
      const result = await load(plain, wanted);
      if (result.cpu !== undefined) ceiling_us.push(result.cpu.main);
      return result.rate;
    },
    svc: async () => {
      const result = await load(ours, wanted);
      if (result.cpu !== undefined) cpu.push(result.cpu);
      return result.rate;
    },
  });
  return { ratio: ratio(speeds.svc, speeds.ceiling), cpu, ceiling_us };
}

function rowsOf(
  kind: (typeof KINDS)[number],
  count: 1 | 2,
  name: string,
  { ratio: value, cpu, ceiling_us }: Contest,
): Row[] {
  const who = `${kind}, ${count === 1 ? "one process" : "two processes"}: ${name}`;
  const goals = GOALS[count === 1 ? "one" : "two"];
  const rows: Row[] = [
    { suite: "http", what: `${who} against the ceiling`, value, goal: { at_least: goals[kind] } },
  ];
  const add = (whose: string, spent: readonly number[], goal: Row["goal"] = null) => {
    if (spent.length > 0)
      rows.push({
        suite: "http",
        what: `${who}, processor time ${whose}`,
        value: median(spent),
        unit: " µs",
        goal,
      });
  };
  const goalOf = (part: "main" | "all") =>
    kind === "files" && count === 1 ? { at_most: CPU_GOALS[part] } : null;
  const spentBy = (part: "main" | "all") => cpu.map((one) => one[part]);
  add("of the ceiling", ceiling_us);
  add("of the main thread", spentBy("main"), goalOf("main"));
  add("of all threads", spentBy("all"), goalOf("all"));
  return rows;
}

/** The same intents over one WebSocket, against the plain server over HTTP. */
async function streamRows(
  kind: (typeof KINDS)[number],
  plain: Running,
  ours: Running,
  { rounds, seconds }: BenchOptions,
): Promise<Row[]> {
  const stream = await overStream(ours.ports[0]!, KEY, ours.run_ids[0]!, BODY);
  const spent: Cpu[] = [];
  const ceiling_us: number[] = [];
  try {
    await stream.intents(LANES, seconds);
    const rates = await alternate(rounds, {
      ceiling: async () => {
        const { rate, cpu } = await load(plain, { intents_for: seconds });
        if (cpu !== undefined) ceiling_us.push(cpu.main);
        return rate;
      },
      stream: async () => {
        const before = cpuOf(ours.pids);
        const answered = await stream.intents(LANES, seconds);
        const after = cpuOf(ours.pids);
        ours.accepted[0]! += answered;
        if (before !== undefined && after !== undefined) spent.push(forEach(before, after, answered));
        return answered / seconds;
      },
    });
    const who = `${kind}, one process: intents over one connection`;
    const suite = "http";
    const time = (whose: string, values: number[]): Row[] =>
      values.length === 0
        ? []
        : [
            {
              suite,
              what: `${who}, processor time ${whose}`,
              value: median(values),
              unit: " µs",
              goal: null,
            },
          ];
    return [
      {
        suite,
        what: `${who} against the ceiling`,
        value: ratio(rates.stream, rates.ceiling),
        goal: kind === "files" ? { at_least: STREAM_GOAL } : null,
      },
      ...time("of the ceiling", ceiling_us),
      ...time(
        "of the main thread",
        spent.map(({ main }) => main),
      ),
      ...time(
        "of all threads",
        spent.map(({ all }) => all),
      ),
    ];
  } finally {
    stream.close();
  }
}

async function measure(
  kind: (typeof KINDS)[number],
  count: 1 | 2,
  places: { folder: string; database: string },
  { rounds, seconds }: BenchOptions,
): Promise<Row[]> {
  const plain = await ceiling(count);
  const ours = await svc(count, kind, places.folder, places.database);
  try {
    // Compiling hot functions takes a few thousand calls, and isn't part of the cost of one.
    for (const running of [plain, ours]) await load(running, { intents: WARM_UP });
    const intents = await contest(plain, ours, { intents_for: seconds }, rounds);
    const stream = count === 1 ? await streamRows(kind, plain, ours, { rounds, seconds }) : [];
    const outcomes = Math.floor(Math.min(...ours.accepted) / rounds);
    const reports = await contest(plain, ours, { outcomes }, rounds);
    return [
      ...rowsOf(kind, count, "intents", intents),
      ...stream,
      ...rowsOf(kind, count, "outcomes", reports),
    ];
  } finally {
    await Promise.all([plain.stop(), ours.stop()]);
  }
}

/** What a server is started with. */
export function serverFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "svc-bench-"));
  writeFileSync(join(folder, "manifests.yaml"), "- {tool: crm.get, effect: read, permission: crm.read}\n");
  const key = { name: "bench", role: "agent", max_permissions: ["*"], key_sha256: sha256Hex(KEY) };
  writeFileSync(join(folder, "keys.json"), JSON.stringify([key]), { mode: 0o600 });
  return folder;
}

export async function run(options: BenchOptions): Promise<Row[]> {
  const folder = serverFolder();
  const kinds = process.env["SVC_BENCH_STORES"]?.split(",") ?? KINDS;
  const database = await openBenchDatabase();
  const rows: Row[] = [];
  try {
    for (const count of [1, 2] as const) {
      for (const kind of KINDS.filter((one) => kinds.includes(one)))
        rows.push(...(await measure(kind, count, { folder, database: database.url }, options)));
    }
  } finally {
    await database.close();
    rmSync(folder, { recursive: true, force: true });
  }
  return rows;
}
