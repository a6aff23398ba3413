/** A whole gateway in this process, over HTTP on the memory store, in front of fake upstreams. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client, type ClientOptions, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { afterAll } from "vitest";
import { loadSettings } from "../../../src/config/load.ts";
import { systemEnv } from "../../../src/kernel/env.ts";
import { sha256Hex } from "../../../src/kernel/hash.ts";
import type { LedgerRecord } from "../../../src/ledger/record.ts";
import { openService, type RunningService } from "../../../src/service/service.ts";
import { type RunningGateway, startHttpGateway } from "../../../src/service/start/gateway.ts";
import { MemoryStore } from "../../../src/store/memory/store.ts";
import { createLogger } from "../../../src/telemetry/log.ts";
import { lineSink } from "../../../src/telemetry/sink.ts";
import { tempDir } from "../../support/tmp.ts";

export { until } from "../../support/until.ts";

export const FAKE = fileURLToPath(new URL("./fake-upstream.mjs", import.meta.url));

export interface FakeSpec {
  name?: string;
  namespace?: boolean;
  timeout?: string;
  env?: Record<string, string>;
  passthrough?: string[];
  isolation?: "principal" | "session" | "shared";
  max_connections?: number;
  idle?: string;
}

export function fakeUpstream({ name = "fake", env = {}, ...rest }: FakeSpec = {}) {
  return { name, command: process.execPath, args: [FAKE], env: { FAKE_NAME: name, ...env }, ...rest };
}

/** The manifests of the fake's tools, with an undo and a read-back for `create`. */
export const FAKE_MANIFESTS = `
- {tool: echo, effect: read, permission: fake.read}
- {tool: get, effect: read, permission: fake.read}
- tool: create
  effect: compensable
  permission: fake.write
  compensation: {tool: delete, args: {id: $result.id}, kind: inverse}
  verification: {tool: get, args: {id: $result.id}, expect: {exists: false}, retries: 1, backoff_ms: 10}
- {tool: delete, effect: idempotent, permission: fake.write}
${["fail", "rpc_error", "hang", "die", "slow", "progress", "log", "ask", "env", "garbage"]
  .concat(["structured", "text_json", "plain", "image", "redefine", "flood", "wrong_id", "twice", "counted"])
  .map((tool) => `- {tool: ${tool}, effect: idempotent, permission: fake.write}`)
  .join("\n")}
`;

export interface GatewayTestOptions {
  upstreams?: unknown[];
  manifests?: string;
  policy?: string;
  mode?: "enforce" | "observe";
  /** Further keys of the config file, as JSON values. */
  config?: Record<string, unknown>;
  keys?: ({ name: string } & Record<string, unknown>)[];
  store?: MemoryStore;
  patience_ms?: number;
}

export interface GatewayTest {
  service: RunningService;
  running: RunningGateway;
  url: string;
  folder: string;
  logged: string[];
  connect(key: string, options?: ConnectOptions): Promise<Client>;
  trail(run_id?: string): Promise<LedgerRecord[]>;
  events(run_id?: string): Promise<string[]>;
}

export interface ConnectOptions {
  path?: string;
  headers?: Record<string, string>;
  mode?: "legacy" | "modern";
  client?: ClientOptions;
  prepare?(client: Client): void;
}

function keyEntries(more: ({ name: string } & Record<string, unknown>)[]) {
  const roles = ["agent", "auditor", "approver", "operator", "admin"].map((role) => ({ name: role, role }));
  return [...roles, { name: "agent2", role: "agent" }, ...more].map((entry) => ({
    max_permissions: ["*"],
    allow_observe: true,
    key_sha256: sha256Hex(entry.name),
    ...entry,
  }));
}

export async function testGateway(options: GatewayTestOptions = {}): Promise<GatewayTest> {
  const folder = tempDir("gateway");
  const config = {
    manifests: "manifests.yaml",
    policy: "policy.yaml",
    auth: { keys: "keys.json" },
    listen: { host: "127.0.0.1", port: 0 },
    mode: options.mode ?? "enforce",
    upstreams: options.upstreams ?? [fakeUpstream()],
    ...options.config,
  };
  writeFileSync(join(folder, "manifests.yaml"), options.manifests ?? FAKE_MANIFESTS);
  writeFileSync(join(folder, "policy.yaml"), options.policy ?? "version: 1\n");
  // JSON is YAML.
  writeFileSync(join(folder, "svc.config.yaml"), JSON.stringify(config));
  writeFileSync(join(folder, "keys.json"), JSON.stringify(keyEntries(options.keys ?? [])), { mode: 0o600 });
  const settings = loadSettings({ flags: {}, env: {}, cwd: folder });
  const logged: string[] = [];
  const log = createLogger(
    { ...settings.log, level: "debug" },
    { sink: lineSink((line) => void logged.push(line)) },
  );
  const store = options.store ?? new MemoryStore();
  const service = await openService(settings, systemEnv, { log, store });
  // Longer than the default: what a test expects of a start must not depend on how busy the machine is.
  const { patience_ms = 15_000 } = options;
  const running = await startHttpGateway(service, { patience_ms });
  let stopped = false;
  const stop = running.stop;
  running.stop = async () => {
    if (stopped) return;
    stopped = true;
    await stop();
  };
  afterAll(() => running.stop());
  const trail = async (run_id?: string) =>
    (await store.records({ run_id, limit: 10_000 })).map((line) => JSON.parse(line) as LedgerRecord);
  return {
    service,
    running,
    url: running.url,
    folder,
    logged,
    connect: (key, more) => connectTo(running.url, key, more),
    trail,
    events: async (run_id) => (await trail(run_id)).map(({ event }) => event),
  };
}

const clients: Client[] = [];
afterAll(async () => {
  await Promise.allSettled(clients.splice(0).map((client) => client.close()));
});

export async function connectTo(url: string, key: string, options: ConnectOptions = {}): Promise<Client> {
  const { path = "/mcp", headers = {}, mode = "legacy" } = options;
  const client = new Client(
    { name: "test-client", version: "1" },
    { ...options.client, versionNegotiation: { mode: mode === "legacy" ? "legacy" : { pin: "2026-07-28" } } },
  );
  options.prepare?.(client);
  const requestInit = { headers: { authorization: `Bearer ${key}`, ...headers } };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}${path}`), { requestInit }));
  clients.push(client);
  return client;
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into results freely
export type AnyResult = any;

/** Nothing of an answer is checked or left out: the SDK's own methods would hide what did not arrive. */
const ANY = {
  "~standard": {
    version: 1 as const,
    vendor: "test",
    validate: (value: unknown) => ({ value: value as AnyResult }),
  },
};

export function ask(
  client: Client,
  method: string,
  params: Record<string, unknown> = {},
  options = {},
): Promise<AnyResult> {
  return client.request({ method, params }, ANY, options) as Promise<AnyResult>;
}

export function call(
  client: Client,
  name: string,
  args: Record<string, unknown> = {},
  meta?: Record<string, unknown>,
  options = {},
): Promise<AnyResult> {
  return ask(
    client,
    "tools/call",
    { name, arguments: args, ...(meta === undefined ? {} : { _meta: meta }) },
    options,
  );
}

export async function toolNames(client: Client): Promise<string[]> {
  const { tools } = await ask(client, "tools/list");
  return tools.map(({ name }: { name: string }) => name).filter((name: string) => !name.startsWith("svc."));
}
