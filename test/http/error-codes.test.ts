/** Every refusal names its cause: in a header for programs, and in the log with the id of the request. */
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import type { AnsweredRequest } from "../../src/http/deps.ts";
import { startListening } from "../../src/http/lifecycle.ts";
import { createHttpServer } from "../../src/http/server.ts";
import { connect as connectTo } from "../../src/index.ts";
import { ERROR_CAUSES } from "../../src/kernel/error-codes.ts";
import { SERVICE_LIMITS } from "../../src/kernel/limits.ts";
import { createRequestLog } from "../../src/telemetry/request-log.ts";
import { lineSink } from "../../src/telemetry/sink.ts";
import { loggedIn, type Seen } from "../console/support/client.ts";
import { consoleServer } from "../console/support/server.ts";
import { testGateway } from "../gateway/support/gateway.ts";
import { ROOT } from "../support/files.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

interface Line {
  request_id: string;
  status: number;
  code?: string;
  error?: string;
}
let s: TestServer;
let url = "";
let port = 0;
const lines: string[] = [];
const logged = (): Line[] => lines.map((line) => JSON.parse(line) as Line);

const POLICY = `
version: 1
approvals: {four_eyes: true}
rules:
  - {id: mails, match: {tool: mail.send}, action: require_approval, reason: ask}
  - {id: ops, match: {tool: crm.create}, action: require_approval, reason: ask, approval: {groups: [ops]}}
`;
beforeAll(async () => {
  s = await testServer({
    policy: POLICY,
    keys: [{ name: "small", role: "agent", max_permissions: ["mail.send"] }],
  });
  const requestLog = createRequestLog({ sink: lineSink((line) => void lines.push(line)) });
  const http = createHttpServer({
    app: s.app,
    metrics: s.app.metrics,
    authenticate: (header) => s.app.auth.keyHolder(header) ?? s.app.auth.authenticate(header),
    answered: (request: AnsweredRequest) => requestLog(request),
  });
  ({ url, port } = await startListening(http, "127.0.0.1", 0));
  await send("agent", "POST", "/v1/runs", {
    run_id: "r",
    permissions: ["mail.send", "crm.read", "crm.write"],
  });
});

async function send(key: string, method: string, path: string, body?: unknown, headers = {}) {
  const response = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  return {
    status: response.status,
    code: response.headers.get("svc-error-code"),
    id: response.headers.get("x-request-id")!,
    body: text === "" ? null : JSON.parse(text),
  };
}
async function waiting(key: string, tool = "mail.send", to = "a@example.org"): Promise<string> {
  const asked = await send(key, "POST", "/v1/runs/r/intents", { tool, args: { to }, reason: "r" });
  return /apr_[0-9a-f-]{36}/.exec(JSON.stringify(asked.body))![0];
}

const CANARY = "canary-5b1e";
const intents = "/v1/runs/r/intents";
const call = { tool: "crm.get", args: { id: CANARY }, reason: "r" };

/** One request for each cause, with what it is answered. */
const REFUSALS: [code: string, status: number, () => ReturnType<typeof send>][] = [
  ["run_exists", 409, () => send("agent", "POST", "/v1/runs", { run_id: "r", permissions: [] })],
  [
    "already_decided",
    409,
    async () => {
      const id = await waiting("agent", "mail.send", "once@example.org");
      await send("approver", "POST", `/v1/approvals/${id}/approve`, {});
      return send("approver", "POST", `/v1/approvals/${id}/approve`, {});
    },
  ],
  [
    "card_changed",
    409,
    async () => {
      const id = await waiting("agent", "mail.send", "card@example.org");
      return send("approver", "POST", `/v1/approvals/${id}/approve`, {
        card_hash: `sha256:${"0".repeat(64)}`,
      });
    },
  ],
  [
    "outcome_reported",
    409,
    async () => {
      const { body } = await send("agent", "POST", intents, call);
      await send("agent", "POST", `/v1/runs/r/steps/${body.step}/outcome`, { status: "succeeded" });
      return send("agent", "POST", `/v1/runs/r/steps/${body.step}/outcome`, { status: "succeeded" });
    },
  ],
  [
    "idempotency_key_reused",
    409,
    async () => {
      const headers = { "idempotency-key": "k" };
      await send("agent", "POST", intents, call, headers);
      return send("agent", "POST", intents, { ...call, args: { id: `${CANARY}-2` } }, headers);
    },
  ],
  ["last_admin", 409, async () => send("admin", "DELETE", `/v1/keys/${await indexOf("admin")}`)],
  [
    "actors_differ",
    409,
    () =>
      send("admin", "POST", "/v1/contain", {
        actor: "agent",
        reason: "stop it",
        expect_actors: 9,
        confirm: true,
      }),
  ],
  [
    "compensation_not_begun",
    409,
    () =>
      send("operator", "POST", "/v1/runs/r/steps/0/compensation/outcome", {
        status: "failed",
        error: CANARY,
      }),
  ],
  [
    "step_not_resolvable",
    409,
    () => send("operator", "POST", "/v1/runs/r/steps/0/resolve", { status: "failed", note: "gone" }),
  ],
  ["unauthenticated", 401, () => send("nobody", "GET", "/v1/runs")],
  ["role_required", 403, () => send("agent", "GET", "/v1/approvals")],
  ["permissions_exceed_cap", 403, () => send("small", "POST", "/v1/runs", { permissions: ["crm.read"] })],
  [
    "group_required",
    403,
    async () => send("approver", "POST", `/v1/approvals/${await waiting("agent", "crm.create")}/approve`, {}),
  ],
  ["unknown_run", 404, () => send("agent", "POST", "/v1/runs/none/intents", call)],
  ["unknown_approval", 404, () => send("approver", "POST", "/v1/approvals/apr_x/approve", {})],
  ["unknown_route", 404, () => send("agent", "GET", "/v1/nope")],
  ["not_enabled", 404, () => send("admin", "DELETE", "/v1/holds/x")],
  ["not_json", 400, () => send("agent", "POST", intents, "{")],
  ["not_json", 400, () => send("agent", "POST", "/v1/runs", "{")],
  ["invalid", 400, () => send("agent", "POST", intents, { ...call, more: CANARY })],
  ["too_large", 413, () => send("agent", "POST", "/v1/runs", `"${"x".repeat(SERVICE_LIMITS.body_bytes)}"`)],
  ["unsupported_media", 415, () => send("agent", "POST", "/v1/runs", "x", { "content-type": "text/plain" })],
];
async function indexOf(name: string): Promise<number> {
  const { body } = await send("admin", "GET", "/v1/keys");
  return body.keys.find((one: { name: string }) => one.name === name).index;
}

describe("a refusal", () => {
  it.each(REFUSALS)("for %s has its code, and its cause is in the log", async (code, status, refuse) => {
    verifies("core.error.code-header", "core.error.code-logged");
    const refused = await refuse();
    expect(refused).toMatchObject({ status, code, body: { error: expect.any(String) } });
    expect(Object.keys(refused.body)).toEqual(["error"]);
    await until(() => logged().some(({ request_id }) => request_id === refused.id), "the line");
    const line = logged().find(({ request_id }) => request_id === refused.id);
    expect(line).toMatchObject({ status, code, error: refused.body.error });
    expect(lines.join()).not.toContain(CANARY);
    expect(ERROR_CAUSES).toHaveProperty(code);
  });

  it("without HTTP has all of it, too", async () => {
    verifies("core.error.code-header", "core.error.code-logged", "contract.http.request-id");
    const text = await new Promise<string>((resolve) => {
      const socket = connect(port, "127.0.0.1");
      let got = "";
      socket.on("data", (chunk) => {
        got += chunk.toString();
      });
      socket.once("close", () => resolve(got));
      socket.write("hello\r\n\r\n");
    });
    expect(text).toMatch(/^svc-error-code: not_http\r$/m);
    const id = /^x-request-id: (req_\w+)\r$/m.exec(text)![1]!;
    expect(logged().find(({ request_id }) => request_id === id)).toMatchObject({
      status: 400,
      code: "not_http",
      error: "the request is not valid HTTP/1.1",
    });
  });

  it("is not part of an answer without an error: an allowed or a blocked call", async () => {
    verifies("core.error.code-header");
    const { code, id, status } = await send("agent", "POST", intents, { ...call, tool: "nowhere" });
    expect({ code, status }).toEqual({ code: null, status: 200 });
    await until(() => logged().some(({ request_id }) => request_id === id), "the line");
    expect(logged().find(({ request_id }) => request_id === id)).not.toHaveProperty("code");
  });

  it("keeps its code in the error that the library throws", async () => {
    verifies("core.error.code-header");
    const svc = await connectTo({ url, key: "agent" });
    await expect(svc.run({ run_id: "r", permissions: [] })).rejects.toMatchObject({
      code: "conflict",
      cause_code: "run_exists",
    });
    await svc.close();
  });
});

describe("on the gateway", () => {
  it.each([
    ["unauthenticated", "/mcp", "nobody", {}],
    ["role_required", "/mcp", "auditor", {}],
    ["role_required", "/operator/mcp", "agent", {}],
    ["origin_refused", "/mcp", "agent", { origin: "https://evil.example" }],
    ["unknown_session", "/mcp", "agent", { "mcp-session-id": "none" }],
    ["invalid", "/mcp", "agent", { accept: "text/plain" }],
  ])("%s is in the header", async (code, path, key, headers) => {
    verifies("core.error.code-header");
    const g = await testGateway();
    const response = await fetch(g.url + path, {
      method: "POST",
      headers: {
        authorization: `Bearer ${key}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        ...headers,
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" }),
    });
    expect(response.headers.get("svc-error-code")).toBe(code);
  });
});

it("a page of the console that refuses names its cause, too", async () => {
  verifies("core.error.code-header");
  const { url: at, close } = await consoleServer({ config: "console: login\n" });
  const person = await loggedIn(at, "auditor");
  const codeOf = ({ status, headers }: Seen) => [status, headers["svc-error-code"]];
  expect(codeOf(await person.get("/console/runs/none"))).toEqual([404, "unknown_run"]);
  expect(codeOf(await person.get("/console/nowhere"))).toEqual([404, "not_found"]);
  expect(codeOf(await person.post("/console/evidence/halt", { reason: "stop" }))).toEqual([403, "forbidden"]);
  expect(codeOf(await person.get("/console"))).toEqual([200, undefined]);
  await close();
});

it("every cause has its row in the reference", () => {
  verifies("core.error.codes-documented");
  const page = readFileSync(join(ROOT, "docs/reference/errors.md"), "utf8");
  for (const code of Object.keys(ERROR_CAUSES)) expect(page).toContain(`| \`${code}\` |`);
});
