/** Metrics and logs of a serving process: who can scrape, the counts, and what a line never holds. */
import { beforeAll, describe, expect, it } from "vitest";
import { createHttpServer } from "../../src/http/server.ts";
import { createRequestLog } from "../../src/telemetry/request-log.ts";
import { lineSink } from "../../src/telemetry/sink.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

const POLICY =
  "version: 1\nrules:\n  - {id: ask, match: {tool: mail.send}, action: require_approval, reason: ask}\n";

describe("GET /metrics", () => {
  let s: TestServer;
  beforeAll(async () => {
    s = await testServer({ policy: POLICY });
  });
  const scrape = async () => (await s.call("auditor", "GET", "/metrics")).text;

  it("needs an auditor's credential, unless it was made public", async () => {
    verifies("core.http.metrics-auditor", "core.http.metrics-public");
    expect((await s.call(null, "GET", "/metrics")).status).toBe(401);
    expect((await s.call("agent", "GET", "/metrics")).status).toBe(403);
    for (const role of ["auditor", "approver", "operator", "admin"]) {
      expect((await s.call(role, "GET", "/metrics")).status).toBe(200);
    }
    const open = await testServer({ config: "metrics_public: true\n" });
    expect((await open.call(null, "GET", "/metrics")).status).toBe(200);
  });

  it("answers in the text exposition format with the documented series", async () => {
    verifies(
      "ops.metrics.text-format",
      "ops.metrics.ledger-events",
      "ops.metrics.approvals",
      "ops.metrics.halted",
      "ops.metrics.runs",
    );
    const { headers, text } = await s.call("auditor", "GET", "/metrics");
    expect(headers["content-type"]).toMatch(/^text\/plain; version=0\.0\.4/);
    for (const line of text.trimEnd().split("\n")) {
      expect(line).toMatch(
        /^(?:|# (?:HELP|TYPE) \w+ .+|[a-zA-Z_]\w*(?:\{.*\})? [-+]?(?:\d[\d.e+-]*|Inf|NaN))$/,
      );
    }
    expect(text).toMatch(/^svc_runs 0$/m);
    expect(text).toMatch(/^svc_halted 0$/m);
    expect(text).toContain('svc_ledger_events_total{event="blocked"} 0\n');
    await s.call("agent", "POST", "/v1/runs", { run_id: "canary-run", permissions: ["mail.send"] });
    const ask = () =>
      s.call("agent", "POST", "/v1/runs/canary-run/intents", {
        tool: "mail.send",
        args: { to: "canary-arg" },
        reason: "canary-reason",
      });
    await ask();
    await s.call("admin", "POST", "/v1/halt", { reason: "drill" });
    await ask();
    const after = await scrape();
    expect(after).toMatch(/^svc_runs 1$/m);
    expect(after).toMatch(/^svc_halted 1$/m);
    expect(after).toContain('svc_approvals{status="pending"} 1\n');
    expect(after).toContain('svc_ledger_events_total{event="blocked"} 2\n');
    expect(after).toContain('svc_ledger_events_total{event="halted"} 1\n');
    expect(after).toMatch(/^svc_decision_duration_seconds_count\{decision="block"\} 2$/m);
    expect(Number(/^svc_ledger_append_duration_seconds_count (\d+)$/m.exec(after)?.[1])).toBeGreaterThan(3);
    expect(after).not.toContain("canary");
    await s.call("admin", "POST", "/v1/resume", {});
    expect(await scrape()).toMatch(/^svc_halted 0$/m);
  });
});

describe("the request log", () => {
  it("has a line for each request, with no body and no key", async () => {
    verifies("ops.log.request-line", "ops.log.no-bodies");
    const s = await testServer();
    const lines: string[] = [];
    const log = createRequestLog({ sink: lineSink((line) => void lines.push(line)) });
    const http = createHttpServer({
      app: s.app,
      metrics: s.app.metrics,
      authenticate: (header) => s.app.auth.authenticate(header),
      answered: log,
    });
    const send = (key: string | null, method: "GET" | "POST", url: string, body?: object) =>
      http.inject({
        method,
        url,
        headers: key === null ? {} : { authorization: `Bearer ${key}` },
        ...(body === undefined ? {} : { payload: body }),
      });
    await send("agent", "POST", "/v1/runs", {
      run_id: "r",
      permissions: ["crm.read"],
      reason: "canary-body",
    });
    await send("auditor", "GET", "/v1/search/records?q=canary-query");
    await send("canary-key", "GET", "/v1/runs");
    await send(null, "GET", "/healthz");
    await send("auditor", "GET", "/metrics");
    await http.close();
    const parsed = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(parsed).toEqual([
      {
        time: expect.any(String),
        method: "POST",
        path: "/v1/runs",
        status: 201,
        ms: expect.any(Number),
        principal: "agent",
        request_id: expect.stringMatching(/^req_/),
      },
      {
        time: expect.any(String),
        method: "GET",
        path: "/v1/search/records",
        status: 200,
        ms: expect.any(Number),
        principal: "auditor",
        request_id: expect.stringMatching(/^req_/),
      },
      {
        time: expect.any(String),
        method: "GET",
        path: "/v1/runs",
        status: 401,
        ms: expect.any(Number),
        principal: null,
        request_id: expect.stringMatching(/^req_/),
        code: "unauthenticated",
        error: "invalid credential",
      },
      {
        time: expect.any(String),
        method: "GET",
        path: "/healthz",
        status: 200,
        ms: expect.any(Number),
        principal: null,
        request_id: expect.stringMatching(/^req_/),
      },
      expect.objectContaining({ path: "/metrics", status: 200, principal: "auditor" }),
    ]);
    expect(lines.join("")).not.toContain("canary");
  });
});
