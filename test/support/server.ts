/** A whole server in this process, on the memory store, with one credential per role: for surface tests. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { FastifyInstance } from "fastify";
import { afterAll } from "vitest";
import { loadSettings } from "../../src/config/load.ts";
import type { StateStore } from "../../src/govern/port/store.ts";
import { createHttpServer } from "../../src/http/server.ts";
import { sha256Hex } from "../../src/kernel/hash.ts";
import { openService, type RunningService } from "../../src/service/service.ts";
import { MemoryStore } from "../../src/store/memory/store.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { lineSink } from "../../src/telemetry/sink.ts";
import { assertDocumented } from "./documented.ts";
import { type FakeEnv, fakeEnv } from "./env.ts";
import { tempDir } from "./tmp.ts";

export interface TestServerOptions {
  manifests?: string;
  policy?: string;
  /** Keys of svc.config.yaml. */
  config?: string;
  environment?: string;
  /** Instead of the memory store. */
  store?: StateStore;
  router_only?: boolean;
  /** Further entries of the key file; each key's value is its name. */
  keys?: ({ name: string } & Record<string, unknown>)[];
}

export interface Answer {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies freely
  body: any;
  headers: Record<string, unknown>;
  text: string;
}

export interface TestServer {
  app: RunningService;
  env: FakeEnv;
  http: FastifyInstance;
  folder: string;
  logged: string[];
  /** Calls with this key: a role's name, or the name of one of `keys`. */
  call(
    key: string | null,
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<Answer>;
}

const DEMO_MANIFESTS = `
- {tool: crm.get, effect: read, permission: crm.read}
- tool: crm.create
  effect: compensable
  permission: crm.write
  compensation: {tool: crm.delete, args: {id: $result.id}, kind: inverse}
- {tool: mail.send, effect: irreversible, permission: mail.send}
`;

/** The key of an entry is its own name, which is all that a test needs to know. */
function keyEntries(more: ({ name: string } & Record<string, unknown>)[]) {
  const roles = ["agent", "auditor", "approver", "operator", "admin"].map((role) => ({ name: role, role }));
  return [...roles, { name: "agent2", role: "agent" }, ...more].map((entry) => ({
    max_permissions: ["*"],
    allow_observe: true,
    key_sha256: sha256Hex(entry.name),
    ...entry,
  }));
}

export async function testServer(options: TestServerOptions = {}): Promise<TestServer> {
  const folder = tempDir("server");
  writeFileSync(join(folder, "manifests.yaml"), options.manifests ?? DEMO_MANIFESTS);
  writeFileSync(join(folder, "policy.yaml"), options.policy ?? "version: 1\n");
  writeFileSync(
    join(folder, "svc.config.yaml"),
    `manifests: manifests.yaml\npolicy: policy.yaml\nkeys: keys.json\n${options.config ?? ""}`,
  );
  writeFileSync(join(folder, "keys.json"), JSON.stringify(keyEntries(options.keys ?? [])), { mode: 0o600 });
  const settings = loadSettings({ flags: {}, env: {}, cwd: folder });
  const env = fakeEnv({ now: Date.parse("2026-06-15T12:00:00Z"), seed: 7 });
  const logged: string[] = [];
  const log = createLogger(settings.log, {
    redact: (text) => text,
    sink: lineSink((line) => void logged.push(line)),
  });
  const app = await openService(settings, env, { log, store: options.store ?? new MemoryStore() });
  const http = createHttpServer({
    app,
    metrics: app.metrics,
    authenticate: (header) => app.auth.keyHolder(header) ?? app.auth.authenticate(header),
    named: (name) => app.auth.named(name),
    ...(options.router_only === true ? { router_only: true } : {}),
  });
  afterAll(async () => {
    await http.close();
    await app.close();
  });
  return {
    app,
    env,
    http,
    folder,
    logged,
    async call(key, method, path, body, headers = {}) {
      const response = await http.inject({
        method: method as "GET",
        url: path,
        headers: {
          ...(key === null ? {} : { authorization: `Bearer ${key}` }),
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        ...(body === undefined ? {} : { payload: typeof body === "string" ? body : JSON.stringify(body) }),
      });
      const type = String(response.headers["content-type"] ?? "");
      const answered = type.startsWith("application/json") ? JSON.parse(response.body) : undefined;
      assertDocumented({ method, url: path, status: response.statusCode, type, body: answered });
      return {
        status: response.statusCode,
        body: answered,
        headers: response.headers,
        text: response.body,
      };
    },
  };
}
