/** Servers on one PostgreSQL whose own clocks are wrong, one a day ahead and one a day behind. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { loadSettings } from "../../src/config/load.ts";
import { createHttpServer } from "../../src/http/server.ts";
import { type RuntimeEnv, systemEnv } from "../../src/kernel/env.ts";
import { sha256Hex } from "../../src/kernel/hash.ts";
import { openService } from "../../src/service/service.ts";
import { CLOCK_MEASURE_MS, SharedClock } from "../../src/service/shared-clock.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { lineSink } from "../../src/telemetry/sink.ts";
import { fakeEnv } from "../support/env.ts";
import { freshDatabase } from "../support/postgres.ts";
import { tempDir } from "../support/tmp.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

const DAY_MS = 86_400_000;
const POLICY = `version: 1
rules:
  - {id: r, match: {tool: mail.send}, action: require_approval, reason: a person decides}
  - {id: l, match: {tool: mail.late}, action: require_approval, reason: a person decides, approval: {ttl: 2s}}
`;

async function server(database_url: string, ahead_ms: number) {
  const folder = tempDir("clock");
  const entry = (name: string, role: string, more = {}) => ({
    name,
    role,
    max_permissions: ["*"],
    key_sha256: sha256Hex(name),
    ...more,
  });
  const ends = { expires_at: new Date(Date.now() + 4_000).toISOString() };
  const keys = [entry("agent", "agent"), entry("admin", "admin"), entry("brief", "auditor", ends)];
  writeFileSync(join(folder, "keys.json"), JSON.stringify(keys), { mode: 0o600 });
  writeFileSync(join(folder, "policy.yaml"), POLICY);
  writeFileSync(
    join(folder, "manifests.yaml"),
    `${["send", "late"].map((tool) => `- {tool: mail.${tool}, effect: irreversible, permission: mail}`).join("\n")}\n`,
  );
  writeFileSync(
    join(folder, "svc.config.yaml"),
    `manifests: manifests.yaml\npolicy: policy.yaml\nkeys: keys.json\nstore: postgres\ndatabase_url: "${database_url}"\n`,
  );
  const settings = loadSettings({ flags: {}, env: {}, cwd: folder });
  const logged: string[] = [];
  const log = createLogger(settings.log, {
    redact: (text) => text,
    sink: lineSink((line) => void logged.push(line)),
  });
  const env: RuntimeEnv = { ...systemEnv, now: () => Date.now() + ahead_ms };
  const app = await openService(settings, env, { log });
  const http = createHttpServer({
    app,
    metrics: app.metrics,
    authenticate: (header) => app.auth.authenticate(header),
  });
  afterAll(async () => {
    await http.close();
    await app.close();
  });
  const call = async (key: string | null, method: "GET" | "POST", url: string, payload?: object) => {
    const headers = key === null ? {} : { authorization: `Bearer ${key}` };
    const answer = await http.inject({ method, url, headers, ...(payload && { payload }) });
    return { status: answer.statusCode, body: answer.json() };
  };
  return { call, logged };
}

type Server = Awaited<ReturnType<typeof server>>;
let ahead: Server;
let behind: Server;
let right: Server;
beforeAll(async () => {
  const { url } = await freshDatabase();
  right = await server(url, 0);
  ahead = await server(url, DAY_MS);
  behind = await server(url, -DAY_MS);
});

async function ask(run_id: string, tool: string): Promise<string> {
  await right.call("agent", "POST", "/v1/runs", { run_id, permissions: ["mail"] });
  const { body } = await right.call("agent", "POST", `/v1/runs/${run_id}/intents`, {
    tool,
    args: {},
    reason: "r",
  });
  return /apr_[0-9a-f-]{36}/.exec(JSON.stringify(body))![0];
}

it("a request that is in time can be approved on a server whose clock is ahead", async () => {
  verifies("beyond.cluster.clock");
  const id = await ask("in-time", "mail.send");
  const { status, body } = await ahead.call("admin", "POST", `/v1/approvals/${id}/approve`, {});
  expect([status, body.status]).toEqual([200, "approved"]);
});

it("a request that has expired cannot be approved on a server whose clock is behind", async () => {
  verifies("beyond.cluster.clock");
  const id = await ask("late", "mail.late");
  const { expires_ms } = (await right.call("admin", "GET", `/v1/approvals/${id}`)).body;
  await until(() => Date.now() > expires_ms, "the end of the request");
  const { status, body } = await behind.call("admin", "POST", `/v1/approvals/${id}/approve`, {});
  expect([status, body.error]).toEqual([409, expect.stringContaining("expired")]);
});

it("a key ends everywhere at the same time", async () => {
  verifies("beyond.cluster.clock");
  const statuses = () =>
    Promise.all([ahead, behind].map(async ({ call }) => (await call("brief", "GET", "/v1/status")).status));
  await until(async () => (await statuses()).every((status) => status === 401), "the end of the key");
});

it("a server whose clock is off reports it in its log and in readyz, and stays ready", async () => {
  verifies("beyond.cluster.clock-warning");
  for (const [{ call, logged }, days, where] of [
    [ahead, 1, "ahead of"],
    [behind, -1, "behind"],
  ] as const) {
    const { status, body } = await call(null, "GET", "/readyz");
    expect(status).toBe(200);
    expect(Math.abs(body.clock.offset_ms - days * DAY_MS)).toBeLessThan(60_000);
    expect(body.clock.warning).toContain(`s ${where} the database's`);
    expect(logged.filter((line) => line.includes(where))).toHaveLength(1);
  }
  const { body } = await right.call(null, "GET", "/readyz");
  expect(body.clock).toEqual({ offset_ms: expect.any(Number) });
});

it("a clock that somebody changes while the server runs moves no expiry, and is reported", async () => {
  verifies("beyond.cluster.clock-warning");
  expect(CLOCK_MEASURE_MS).toBe(10_000);
  const env = fakeEnv();
  const started = env.now();
  const warned: string[] = [];
  const clock = new SharedClock(env, async () => started + env.elapsed(), {
    warn: (message: string) => void warned.push(message),
  } as never);
  await clock.measure();
  expect([clock.warning, warned]).toEqual([null, []]);
  env.setNow(started + DAY_MS);
  expect(clock.env.now()).toBe(started);
  await clock.measure();
  await clock.measure();
  expect(warned).toEqual([expect.stringContaining("86400.0 s ahead of the database's")]);
  await env.advance(1_000);
  expect(clock.env.now()).toBe(started + 1_000);
});
