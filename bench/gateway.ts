/**
 * The gateway next to two proxies that only pass calls on. Each of our calls is decided, recorded
 * and durable before its answer. All three are in front of the same tool server, in the same run.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sha256Hex } from "../src/kernel/hash.ts";
import { cpuOf } from "./cpu.ts";
import { type Contestant, intoPipe, latency, overHttp, throughput } from "./gateway-load.ts";
import type { BenchOptions } from "./main.ts";
import { alternate, median, type Row, ratio } from "./report.ts";
import { freePort, HERE, ROOT, stopped } from "./server.ts";

export const UPSTREAM = join(HERE, "gateway-upstream.mjs");
const KEY = "bench-key";
export const SESSIONS = 32;

/** The undo of `put` needs the previous state, so the gateway reads before it forwards and after. */
export const PLAIN = "- {tool: echo, effect: read, permission: bench.read}\n";
const MANIFESTS = `${PLAIN}
- tool: put
  effect: reversible
  permission: bench.write
  before: {tool: echo, args: {mark: $args.mark}}
  compensation: {tool: put, args: {mark: $before.mark}}
`;
const WITH_BEFORE = "files, with a before";
const PIPE = "files, over its own pipe";

export interface Running {
  url: string;
  contestant: Contestant;
  child: ChildProcess;
}

export async function start(
  args: (port: number) => string[],
  key: string | null = null,
  path = "/mcp",
): Promise<Running> {
  const port = await freePort();
  const stderr = process.env["SVC_BENCH_LOG"] ? "inherit" : "ignore";
  const child = spawn(process.execPath, args(port), {
    stdio: ["ignore", "ignore", stderr],
    env: { ...process.env, SVC_LOG_LEVEL: "error" },
  });
  for (let tries = 0; ; tries++) {
    if (child.exitCode !== null) throw new Error(`${args(port)[0]} ended with code ${child.exitCode}`);
    const url = `http://127.0.0.1:${port}${path}`;
    try {
      return { url, child, contestant: await overHttp(url, SESSIONS, key) };
    } catch (error) {
      if (tries > 600) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

export function svc(folder: string, store: string, manifests = MANIFESTS, name = store): Promise<Running> {
  const keys = [{ name: "bench", role: "agent", max_permissions: ["*"], key_sha256: sha256Hex(KEY) }];
  writeFileSync(join(folder, "keys.json"), JSON.stringify(keys), { mode: 0o600 });
  const auth = { keys: "keys.json" };
  return start(
    (port) => svcGateway(folder, name, manifests, { store, auth, listen: { host: "127.0.0.1", port } }),
    KEY,
  );
}

/** The command line of a gateway with these settings; one that does not listen serves its own pipe. */
export function svcGateway(folder: string, name: string, manifests: string, settings: object): string[] {
  const config = join(folder, `${name}.yaml`);
  writeFileSync(join(folder, `${name}-manifests.yaml`), manifests);
  const upstreams = [{ name: "bench", command: process.execPath, args: [UPSTREAM] }];
  const text = { manifests: `${name}-manifests.yaml`, data: name, upstreams, ...settings };
  writeFileSync(config, JSON.stringify(text));
  return [join(ROOT, "bin", "svc.js"), "gateway", "--config", config];
}

const modules = (...parts: string[]) => join(ROOT, "node_modules", ...parts);

export function mcpProxy(): Promise<Running> {
  const bin = modules("mcp-proxy", "dist", "bin", "mcp-proxy.mjs");
  return start((port) => [
    bin,
    "--port",
    String(port),
    "--server",
    "stream",
    "--",
    process.execPath,
    UPSTREAM,
  ]);
}

export function supergateway(): Promise<Running> {
  const bin = modules("supergateway", "dist", "index.js");
  const stdio = `${process.execPath} ${UPSTREAM}`;
  const fixed = [
    "--stdio",
    stdio,
    "--outputTransport",
    "streamableHttp",
    "--stateful",
    "--streamableHttpPath",
    "/mcp",
    "--logLevel",
    "none",
  ];
  return start((port) => [bin, ...fixed, "--port", String(port)]);
}

export async function run({ rounds, seconds }: BenchOptions): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), "svc-bench-gateway-"));
  const running: Record<string, Running> = {};
  let before: Contestant | undefined;
  const direct = await intoPipe(process.execPath, [UPSTREAM]);
  const pipe = await intoPipe(process.execPath, svcGateway(folder, "pipe", MANIFESTS, { store: "files" }));
  try {
    running["files"] = await svc(folder, "files");
    running["sqlite"] = await svc(folder, "sqlite");
    running["mcp-proxy"] = await mcpProxy();
    running["supergateway"] = await supergateway();
    before = await overHttp(running["files"].url, SESSIONS, KEY, "put");
    const contestants = Object.entries(running).map(([name, { contestant }]) => [name, contestant] as const);
    contestants.push([WITH_BEFORE, before], [PIPE, pipe]);
    // A first round warms everything up and is not counted.
    for (const [, contestant] of contestants) await throughput(contestant, SESSIONS, seconds);
    const speeds = await alternate(rounds, {
      direct: () => throughput(direct, SESSIONS, seconds / 3),
      ...Object.fromEntries(
        contestants.map(([name, contestant]) => [name, () => throughput(contestant, SESSIONS, seconds)]),
      ),
    });
    const waits = await alternate(rounds, {
      direct: () => latency(direct, seconds / 6),
      ...Object.fromEntries(
        contestants.map(([name, contestant]) => [name, () => latency(contestant, seconds / 3)]),
      ),
    });
    const beside = await svc(folder, "files", MANIFESTS, "beside");
    running["beside"] = beside;
    const none = await svc(folder, "files", PLAIN, "none");
    running["none"] = none;
    return [...report(speeds, waits), ...(await unused({ beside, none }, rounds, seconds))];
  } finally {
    direct.stop();
    pipe.stop();
    before?.stop();
    for (const { contestant } of Object.values(running)) contestant.stop();
    await Promise.all(Object.values(running).map(({ child }) => stopped(child)));
    rmSync(folder, { recursive: true, force: true });
  }
}

/** CPU time of a call without `before`, with manifests of other tools that have one, and without any. */
async function unused(
  gateways: { beside: Running; none: Running },
  rounds: number,
  seconds: number,
): Promise<Row[]> {
  const costOf =
    ({ child, contestant }: Running) =>
    async () => {
      const from = cpuOf([child.pid!])?.all;
      const calls = (await throughput(contestant, SESSIONS, seconds)) * seconds;
      return from === undefined ? Number.NaN : (cpuOf([child.pid!])!.all - from) / calls;
    };
  const costs = { beside: costOf(gateways.beside), none: costOf(gateways.none) };
  // Both are new, and as warm as each other once they are counted.
  await alternate(2, costs);
  const { beside, none } = await alternate(rounds, costs);
  const what = "processor time of a call without a before";
  return [
    {
      suite: "gateway",
      what: `${what}: another tool has one, against no tool`,
      value: ratio(beside!, none!),
      unit: "x",
      goal: null,
    },
    {
      suite: "gateway",
      what: `${what}: another tool has one`,
      value: median(beside!),
      unit: " us",
      goal: null,
    },
    { suite: "gateway", what: `${what}: no tool has one`, value: median(none!), unit: " us", goal: null },
  ];
}

function report(speeds: Record<string, number[]>, waits: Record<string, number[]>): Row[] {
  const rows: Row[] = [];
  const suite = "gateway";
  for (const store of ["files", "sqlite"]) {
    for (const peer of ["mcp-proxy", "supergateway"]) {
      const what = `calls/s, governed and durable (${store}), against ${peer} ungoverned`;
      rows.push({
        suite,
        what,
        value: ratio(speeds[store]!, speeds[peer]!),
        unit: "x",
        goal: { at_least: 1 },
      });
    }
  }
  rows.push(
    {
      suite,
      what: "one call over the gateway's own pipe, against HTTP",
      value: ratio(waits[PIPE]!, waits["files"]!),
      unit: "x",
      goal: { at_most: 1.5 },
    },
    {
      suite,
      what: "calls/s over the gateway's own pipe, against HTTP",
      value: ratio(speeds[PIPE]!, speeds["files"]!),
      unit: "x",
      goal: { at_least: 0.67 },
    },
  );
  const price = waits[WITH_BEFORE]!.map((value, i) => value - waits["files"]![i]!);
  rows.push({
    suite,
    what: "price of a before: added to one call",
    value: median(price),
    unit: " ms",
    goal: null,
  });
  const slower = ratio(speeds["files"]!, speeds[WITH_BEFORE]!);
  rows.push({
    suite,
    what: "price of a before: calls/s without against with",
    value: slower,
    unit: "x",
    goal: null,
  });
  for (const [name, values] of Object.entries(speeds))
    rows.push({ suite, what: `calls/s: ${name}`, value: median(values), goal: null });
  for (const [name, values] of Object.entries(waits)) {
    if (name === "direct") continue;
    const added = median(values.map((value, i) => value - waits["direct"]![i]!));
    rows.push({ suite, what: `added latency of one call: ${name}`, value: added, unit: " ms", goal: null });
  }
  return rows;
}
