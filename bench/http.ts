/**
 * Whole requests: intents a second over 64 keep-alive connections, every record durable before its answer,
 * against a plain `node:http` server that parses the same body and answers at once. Disk syncs are delayed
 * to one millisecond in the measured processes, so that runs on different disks compare.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import autocannon from "autocannon";
import { sha256Hex } from "../src/kernel/hash.ts";
import type { BenchOptions } from "./main.ts";
import { openBenchDatabase } from "./postgres.ts";
import { alternate, type Row, ratio } from "./report.ts";
import { freePort, HERE, spawnServer, stopped, untilReady } from "./server.ts";

const KEY = "bench-key";
const BODY = JSON.stringify({
  tool: "crm.get",
  args: { id: "c-1042", fields: ["name", "mail"] },
  reason: "look a customer up",
});
const KINDS = ["files", "sqlite", "postgres"] as const;
const GOALS = {
  one: { files: 0.7, sqlite: 0.62, postgres: 0.45 },
  two: { files: 0.65, sqlite: 0.55, postgres: 0.35 },
};

interface Running {
  ports: number[];
  run_ids: (string | null)[];
  stop(): Promise<void>;
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

function svc(count: number, kind: string, folder: string, database: string): Promise<Running> {
  const one = (port: number) =>
    spawnServer({ port, store: kind, data: join(folder, kind), folder, database, node: slowSync });
  return start(count, one, true);
}

/** Requests a second over all processes together, 64 connections in all. */
async function load({ ports, run_ids }: Running, seconds: number): Promise<number> {
  const results = await Promise.all(
    ports.map((port, i) =>
      autocannon({
        url: `http://127.0.0.1:${port}/v1/runs/${run_ids[i] ?? "x"}/intents`,
        method: "POST",
        headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
        body: BODY,
        connections: 64 / ports.length,
        duration: seconds,
      }),
    ),
  );
  for (const { non2xx, errors } of results) {
    if (non2xx + errors > 0) throw new Error(`${non2xx} answers were not 2xx, ${errors} requests failed`);
  }
  return results.reduce((sum, result) => sum + result.requests.average, 0);
}

export async function run({ rounds, seconds }: BenchOptions): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), "svc-bench-"));
  writeFileSync(join(folder, "manifests.yaml"), "- {tool: crm.get, effect: read, permission: crm.read}\n");
  const key = { name: "bench", role: "agent", max_permissions: ["*"], key_sha256: sha256Hex(KEY) };
  writeFileSync(join(folder, "keys.json"), JSON.stringify([key]), { mode: 0o600 });
  const database = await openBenchDatabase();
  const rows: Row[] = [];
  try {
    for (const count of [1, 2] as const) {
      for (const kind of KINDS) {
        const plain = await ceiling(count);
        const ours = await svc(count, kind, folder, database.url);
        try {
          await load(ours, 1);
          const speeds = await alternate(rounds, {
            ceiling: () => load(plain, seconds),
            svc: () => load(ours, seconds),
          });
          rows.push({
            suite: "http",
            what: `${kind}, ${count === 1 ? "one process" : "two processes"}: intents against the ceiling`,
            value: ratio(speeds.svc, speeds.ceiling),
            goal: { at_least: GOALS[count === 1 ? "one" : "two"][kind] },
          });
        } finally {
          await Promise.all([plain.stop(), ours.stop()]);
        }
      }
    }
  } finally {
    await database.close();
    rmSync(folder, { recursive: true, force: true });
  }
  return rows;
}
