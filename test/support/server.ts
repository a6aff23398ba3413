/** A whole server in this process, on the memory store, with one credential per role: for surface tests. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { FastifyInstance } from "fastify";
import { afterAll } from "vitest";
import type { App } from "../../src/app/app.ts";
import { openLocalApp } from "../../src/app/local.ts";
import { appMetrics } from "../../src/app/metrics-source.ts";
import { loadSettings } from "../../src/config/load.ts";
import { createHttpServer } from "../../src/http/server.ts";
import { SvcError } from "../../src/kernel/errors.ts";
import type { Principal, Role } from "../../src/model/roles.ts";
import { MemoryStore } from "../../src/store/memory/store.ts";
import { lineSink } from "../../src/telemetry/sink.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { principal } from "./engine.ts";
import { fakeEnv, type FakeEnv } from "./env.ts";
import { tempDir } from "./tmp.ts";

export interface TestServerOptions {
  manifests?: string;
  policy?: string;
  /** Keys of svc.config.yaml. */
  config?: string;
  environment?: string;
  /** Further principals by their bearer key. */
  principals?: Record<string, Principal>;
}

export interface Answer {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies freely
  body: any;
  headers: Record<string, unknown>;
  text: string;
}

export interface TestServer {
  app: App;
  env: FakeEnv;
  http: FastifyInstance;
  folder: string;
  logged: string[];
  /** Calls as the principal whose key this is: a role's name, or one of `principals`. */
  call(key: string | null, method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
}

const DEMO_MANIFESTS = `
- {tool: crm.get, effect: read, permission: crm.read}
- tool: crm.create
  effect: compensable
  permission: crm.write
  compensation: {tool: crm.delete, args: {id: $result.id}, kind: inverse}
- {tool: mail.send, effect: irreversible, permission: mail.send}
`;

export async function testServer(options: TestServerOptions = {}): Promise<TestServer> {
  const folder = tempDir("server");
  writeFileSync(join(folder, "manifests.yaml"), options.manifests ?? DEMO_MANIFESTS);
  writeFileSync(join(folder, "policy.yaml"), options.policy ?? "version: 1\n");
  writeFileSync(join(folder, "svc.config.yaml"), `manifests: manifests.yaml\npolicy: policy.yaml\n${options.config ?? ""}`);
  const settings = loadSettings({ flags: {}, env: {}, cwd: folder });
  const env = fakeEnv({ now: Date.parse("2026-06-15T12:00:00Z"), seed: 7 });
  const logged: string[] = [];
  const log = createLogger(settings.log, { redact: (text) => text, sink: lineSink((line) => void logged.push(line)) });
  const app = await openLocalApp(settings, env, { log, store: new MemoryStore() });
  const principals = new Map<string, Principal>(Object.entries(options.principals ?? {}));
  for (const role of ["agent", "auditor", "approver", "operator", "admin"] as Role[]) principals.set(role, principal(role, role));
  principals.set("agent2", principal("agent2", "agent"));
  const http = createHttpServer({
    app,
    metrics: appMetrics(app),
    async authenticate(header) {
      const found = principals.get(/^Bearer (.+)$/.exec(header ?? "")?.[1] ?? "");
      if (found === undefined) throw new SvcError("unauthenticated", "missing or invalid credential");
      return found;
    },
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
      const json = String(response.headers["content-type"] ?? "").startsWith("application/json");
      return {
        status: response.statusCode,
        body: json ? JSON.parse(response.body) : undefined,
        headers: response.headers,
        text: response.body,
      };
    },
  };
}
