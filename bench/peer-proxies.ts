/**
 * The same call of the same tool through every program between an MCP client and its tool server: over HTTP with many
 * sessions, and over the pipe of a server that the client starts.
 */
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "../src/kernel/errors.ts";
import {
  mcpProxy,
  PLAIN,
  type Running,
  SESSIONS,
  start,
  supergateway,
  svc,
  svcGateway,
  UPSTREAM,
} from "./gateway.ts";
import { type Contestant, intoPipe, latency, throughput } from "./gateway-load.ts";
import type { BenchOptions } from "./main.ts";
import { installed } from "./peer-install.ts";
import { alternate } from "./report.ts";
import { HERE, stopped } from "./server.ts";

interface Proxy extends Contestant {
  end(): Promise<void>;
}
type Begin = (folder: string) => Promise<Proxy | null>;

const behind =
  (begun: (folder: string) => Promise<Running | null>): Begin =>
  async (folder) => {
    const running = await begun(folder);
    if (running === null) return null;
    const { contestant, child } = running;
    const end = async () => {
      contestant.stop();
      await stopped(child);
    };
    return { ...contestant, end };
  };

const piped = async (args: string[]): Promise<Proxy> => {
  const contestant = await intoPipe(process.execPath, args);
  return { ...contestant, end: async () => contestant.stop() };
};

async function civic(folder: string): Promise<Running | null> {
  const own = await installed(folder, "@civic/passthrough-mcp-server", "0.12.1");
  if (own === null) return null;
  const program = join(own, "proxy.mjs");
  copyFileSync(join(HERE, "peer-civic.mjs"), program);
  return start((port) => [program, String(port), join(own, "audit.jsonl"), UPSTREAM]);
}

async function fiberplane(folder: string): Promise<Running | null> {
  const own = await installed(folder, "@fiberplane/mcp-gateway", "0.7.1");
  if (own === null) return null;
  const storage = join(own, "storage");
  mkdirSync(storage);
  const bench = { type: "stdio", command: process.execPath, args: [UPSTREAM] };
  writeFileSync(join(storage, "mcp.json"), JSON.stringify({ mcpServers: { bench } }));
  const bin = join(own, "node_modules", "@fiberplane", "mcp-gateway", "bin", "mcp-gateway.js");
  return start((port) => [bin, "--port", String(port), "--storage-dir", storage], null, "/s/bench/mcp");
}

async function flightRecorder(folder: string): Promise<Proxy | null> {
  const own = await installed(folder, "mcp-flight-recorder", "0.2.0");
  if (own === null) return null;
  const bin = join(own, "node_modules", "mcp-flight-recorder", "dist", "cli.js");
  return piped([bin, "wrap", "--trace", join(own, "trace.json"), "--", process.execPath, UPSTREAM]);
}

const OVER_HTTP: Record<string, Begin> = {
  "svc, files": behind((folder) => svc(folder, "files")),
  "svc, sqlite": behind((folder) => svc(folder, "sqlite")),
  "@civic/passthrough-mcp-server": behind(civic),
  "@fiberplane/mcp-gateway": behind(fiberplane),
  "mcp-proxy": behind(mcpProxy),
  supergateway: behind(supergateway),
};

const OVER_A_PIPE: Record<string, Begin> = {
  "no proxy at all": () => piped([UPSTREAM]),
  "svc, files": (folder) => piped(svcGateway(folder, "pipe", PLAIN, { store: "files" })),
  "mcp-flight-recorder": flightRecorder,
};

export interface CallFigures {
  /** Calls a second with all sessions busy, by round. */
  throughput: Record<string, number[]>;
  /** Milliseconds of one call on its own, by round. */
  latency: Record<string, number[]>;
}

/** All of them running at the same time, measured in turn; one that does not start is reported and left out. */
async function measured(
  folder: string,
  begins: Record<string, Begin>,
  options: BenchOptions,
): Promise<CallFigures> {
  const { rounds, seconds } = options;
  const proxies = new Map<string, Proxy>();
  try {
    for (const [name, begin] of Object.entries(begins)) {
      const proxy = await begin(folder).catch((error: unknown) => {
        console.error(`not compared: ${name}: ${messageOf(error)}`);
        return null;
      });
      if (proxy !== null) proxies.set(name, proxy);
    }
    const each = (measure: (proxy: Proxy) => Promise<number>) =>
      Object.fromEntries([...proxies].map(([name, proxy]) => [name, () => measure(proxy)]));
    const busy = each((proxy) => throughput(proxy, SESSIONS, seconds));
    // A first round warms everything up and is not counted.
    await alternate(1, busy);
    return {
      throughput: await alternate(rounds, busy),
      latency: await alternate(
        rounds,
        each((proxy) => latency(proxy, seconds / 3)),
      ),
    };
  } finally {
    await Promise.all([...proxies.values()].map((proxy) => proxy.end()));
  }
}

export const callsOverHttp = (folder: string, options: BenchOptions) => measured(folder, OVER_HTTP, options);
export const callsOverPipe = (folder: string, options: BenchOptions) =>
  measured(folder, OVER_A_PIPE, options);
