/** A listening server with a console, on the memory store, with one key per role whose value is its name. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadSettings } from "../../../src/config/load.ts";
import { mountConsole } from "../../../src/console/mount.ts";
import type { OneTimeLink } from "../../../src/console/session/one-time-link.ts";
import type { StateStore } from "../../../src/govern/port/store.ts";
import { type ListeningServer, startListening } from "../../../src/http/lifecycle.ts";
import { createHttpServer } from "../../../src/http/server.ts";
import { type RuntimeEnv, systemEnv } from "../../../src/kernel/env.ts";
import { sha256Hex } from "../../../src/kernel/hash.ts";
import { channelsSchema } from "../../../src/notify/channels/table.ts";
import { openService, type RunningService } from "../../../src/service/service.ts";
import { MemoryStore } from "../../../src/store/memory/store.ts";
import { createLogger } from "../../../src/telemetry/log.ts";
import { lineSink } from "../../../src/telemetry/sink.ts";

export interface ConsoleOptions {
  /** Keys of svc.config.yaml; `console: login` unless it says otherwise. `$FOLDER` is the server's own folder. */
  config?: string;
  manifests?: string;
  policy?: string;
  keys?: ({ name: string } & Record<string, unknown>)[];
  env?: RuntimeEnv;
  /** Shared with another server, as processes share one. */
  store?: StateStore;
  environment?: Record<string, string>;
  /** One that was found free, where its own address has to be known to its configuration. */
  port?: number;
  /** Written into the folder before it starts. */
  files?: Record<string, string>;
  link?(app: RunningService): Promise<OneTimeLink>;
}

/** The real world, with a clock that a test may put forward. */
export function shiftedEnv(): RuntimeEnv & { forward(ms: number): void } {
  let shift = 0;
  return {
    ...systemEnv,
    now: () => systemEnv.now() + shift,
    forward: (ms) => {
      shift += ms;
    },
  };
}

export interface ConsoleServer {
  app: RunningService;
  url: string;
  port: number;
  folder: string;
  logged: string[];
  /** Calls the API with this key, as agents do. */
  api(key: string, method: string, path: string, body?: unknown): Promise<{ status: number; body: Answer }>;
  close(): Promise<void>;
}
// biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely
export type Answer = any;

export const MANIFESTS = `
- {tool: crm.get, effect: read, permission: crm.read, owner: sales-ops}
- tool: crm.create
  effect: compensable
  permission: crm.write
  owner: sales-ops
  risk: {data_class: pii, blast_radius: single}
  compensation: {tool: crm.delete, args: {id: $result.id}, kind: inverse, residue: ["a welcome mail was sent"]}
- {tool: mail.send, effect: irreversible, permission: mail.send}
- tool: pay.refund
  effect: compensable
  permission: pay.refund
  risk: {data_class: financial, blast_radius: external}
  compensation: {tool: pay.reclaim, args: {id: $result.id}, requires_approval: true}
`;

export const POLICY = `version: 1
rules:
  - id: big-refunds
    match: {tool: pay.refund}
    when: [{path: $args.amount, op: gt, value: 500}]
    action: require_approval
    reason: refunds over 500 need a person
risk: {}
retention: {default_days: 30}
tests:
  - {name: small passes, input: {tool: pay.refund, args: {amount: 20}}, expect: allow}
  - {name: big waits, input: {tool: pay.refund, args: {amount: 900}}, expect: require_approval, rule: big-refunds}
`;

const ROLES = ["agent", "auditor", "approver", "operator", "admin"];

function keyFile(more: ConsoleOptions["keys"] = []): string {
  const entries = [...ROLES.map((role) => ({ name: role, role })), ...more].map((entry) => ({
    max_permissions: ["*"],
    allow_observe: true,
    key_sha256: sha256Hex(entry.name),
    ...entry,
  }));
  return JSON.stringify(entries);
}

export async function consoleServer(options: ConsoleOptions = {}): Promise<ConsoleServer> {
  const folder = mkdtempSync(join(process.env["SVC_TEST_TMP"] ?? tmpdir(), "console-"));
  const files: Record<string, string> = {
    "manifests.yaml": options.manifests ?? MANIFESTS,
    "policy.yaml": options.policy ?? POLICY,
    "keys.json": keyFile(options.keys),
    "svc.config.yaml": `manifests: manifests.yaml\npolicy: policy.yaml\nkeys: keys.json\n${options.config ?? "console: login\n"}`,
    ...options.files,
  };
  for (const [name, text] of Object.entries(files))
    writeFileSync(join(folder, name), text.replaceAll("$FOLDER", folder), { mode: 0o600 });
  const schemas = { "notifications.channels": channelsSchema };
  const settings = loadSettings({ flags: {}, env: options.environment ?? {}, cwd: folder, schemas });
  const logged: string[] = [];
  const log = createLogger(settings.log, {
    redact: (text) => text,
    sink: lineSink((line) => void logged.push(line)),
  });
  const app = await openService(settings, options.env ?? systemEnv, {
    log,
    store: options.store ?? new MemoryStore(),
  });
  const http = createHttpServer({
    app,
    metrics: app.metrics,
    authenticate: (header) => app.auth.authenticate(header),
    named: (name) => app.auth.named(name),
  });
  mountConsole(http, { app, auth: app.auth, link: await options.link?.(app) });
  const listening: ListeningServer = await startListening(http, "127.0.0.1", options.port ?? 0);
  return {
    app,
    url: listening.url,
    port: listening.port,
    folder,
    logged,
    async api(key, method, path, body) {
      const response = await http.inject({
        method: method as "GET",
        url: path,
        headers: {
          authorization: `Bearer ${key}`,
          ...(body === undefined ? {} : { "content-type": "application/json" }),
        },
        ...(body === undefined ? {} : { payload: JSON.stringify(body) }),
      });
      const json = String(response.headers["content-type"] ?? "").startsWith("application/json");
      return { status: response.statusCode, body: json ? JSON.parse(response.body) : response.body };
    },
    async close() {
      await listening.stop();
      await app.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
