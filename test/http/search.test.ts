/** Searching runs and records: every filter, the pages, and which runs need attention. */
import { beforeAll, describe, expect, it } from "vitest";
import { type TestServer, testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

const MANIFESTS = `
- {tool: crm.get, effect: read, permission: p}
- tool: crm.create
  effect: compensable
  permission: p
  compensation: {tool: crm.delete, args: {id: $result.id}}
- tool: crm.grant
  effect: compensable
  permission: p
  compensation: {tool: crm.revoke, args: {id: $result.id}, requires_approval: true}
`;
const HOUR = 3_600_000;
let s: TestServer;
let started = 0;

async function run(key: string, run_id: string, tools: string[], more: object = {}): Promise<void> {
  const opened = await s.call(key, "POST", "/v1/runs", { run_id, permissions: ["p"], ...more });
  expect(opened.status).toBe(201);
  for (const [step, tool] of tools.entries()) {
    const asked = await s.call(key, "POST", `/v1/runs/${run_id}/intents`, {
      tool,
      args: {},
      reason: `ask ${run_id}`,
    });
    if (asked.body.decision === "block") continue;
    await s.call(key, "POST", `/v1/runs/${run_id}/steps/${step}/outcome`, {
      status: "succeeded",
      result: { id: 1 },
    });
  }
}
const find = async (query: string) => {
  const { status, body } = await s.call("auditor", "GET", `/v1/search/runs?${query}`);
  expect(status).toBe(200);
  return body.runs.map(({ run_id }: { run_id: string }) => run_id);
};
const records = async (query: string) => {
  const { status, body } = await s.call("auditor", "GET", `/v1/search/records?${query}`);
  expect(status).toBe(200);
  return body.records;
};
const iso = (ms: number) => encodeURIComponent(new Date(ms).toISOString());

beforeAll(async () => {
  s = await testServer({ manifests: MANIFESTS, keys: [{ name: "acme-bot", role: "agent", tenant: "acme" }] });
  started = s.env.now();
  await run("agent", "first", ["crm.get"], { reason: "Nightly sync" });
  await s.env.advance(HOUR);
  await run("acme-bot", "second", ["crm.create", "unknown.tool"]);
  await s.env.advance(HOUR);
  await run("agent", "third", ["crm.get", "unknown.tool"], { mode: "observe" });
});

describe("GET /v1/search/runs", () => {
  it("is for auditors, and answers newest first with what matters", async () => {
    verifies("core.route.search-runs", "contract.http.search-runs-answer");
    expect((await s.call("agent", "GET", "/v1/search/runs")).status).toBe(403);
    const { body } = await s.call("auditor", "GET", "/v1/search/runs");
    expect(body).toEqual({
      runs: [
        {
          run_id: "third",
          actor: "agent",
          mode: "observe",
          tenant: null,
          reason: null,
          created_ms: started + 2 * HOUR,
          steps: 2,
          unresolved: 0,
          attention: false,
          state: "open",
        },
        {
          run_id: "second",
          actor: "acme-bot",
          mode: "enforce",
          tenant: "acme",
          reason: null,
          created_ms: started + HOUR,
          steps: 1,
          unresolved: 0,
          attention: false,
          state: "settled",
        },
        {
          run_id: "first",
          actor: "agent",
          mode: "enforce",
          tenant: null,
          reason: "Nightly sync",
          created_ms: started,
          steps: 1,
          unresolved: 0,
          attention: false,
          state: "settled",
        },
      ],
      next_cursor: null,
    });
  });

  it("filters by each field", async () => {
    verifies("contract.http.search-runs-query");
    expect(await find("actor=agent")).toEqual(["third", "first"]);
    expect(await find("actor=agen")).toEqual([]);
    expect(await find("tool=crm.create")).toEqual(["second"]);
    expect(await find("tenant=acme")).toEqual(["second"]);
    expect(await find("mode=observe")).toEqual(["third"]);
    expect(await find("status=succeeded&mode=enforce")).toEqual(["second", "first"]);
    expect(await find("status=failed")).toEqual([]);
    expect(await find("event=blocked")).toEqual(["second"]);
    expect(await find("event=would_block")).toEqual(["third"]);
    expect(await find("since=90m")).toEqual(["third", "second"]);
    expect(await find(`since=${iso(started + 1)}&until=${iso(started + HOUR)}`)).toEqual(["second"]);
    expect(await find("q=NIGHTLY")).toEqual(["first"]);
    expect(await find("q=acme")).toEqual(["second"]);
    expect(await find("attention=1")).toEqual([]);
    const pages: string[] = [];
    for (let cursor = ""; ; ) {
      const { body } = await s.call("auditor", "GET", `/v1/search/runs?limit=1${cursor}`);
      pages.push(...body.runs.map(({ run_id }: { run_id: string }) => run_id));
      if (body.next_cursor === null) break;
      cursor = `&cursor=${encodeURIComponent(body.next_cursor)}`;
    }
    expect(pages).toEqual(["third", "second", "first"]);
    for (const bad of [
      "mode=off",
      "status=done",
      "event=nope",
      "since=yesterday",
      "attention=yes",
      "odd=1",
      "actor=",
    ]) {
      expect((await s.call("auditor", "GET", `/v1/search/runs?${bad}`)).status, bad).toBe(400);
    }
  });

  it("gives fifty at a time unless asked for others, and five hundred at most", async () => {
    verifies("contract.http.search-runs-limit");
    const many = await testServer();
    for (let i = 0; i < 51; i++)
      await many.call("agent", "POST", "/v1/runs", { run_id: `m${i}`, permissions: [] });
    const page = async (query: string) => (await many.call("auditor", "GET", `/v1/search/runs${query}`)).body;
    expect((await page("")).runs).toHaveLength(50);
    expect((await page("?limit=500")).runs).toHaveLength(51);
    expect((await many.call("auditor", "GET", "/v1/search/runs?limit=501")).status).toBe(400);
  });

  it("knows which runs need attention", async () => {
    verifies("contract.readings.attention");
    const own = await testServer({ manifests: MANIFESTS });
    const post = (key: string, path: string, body: object) => own.call(key, "POST", `/v1/runs/${path}`, body);
    const made = async (id: string, tool: string, outcome: object | null) => {
      await own.call("agent", "POST", "/v1/runs", { run_id: id, permissions: ["p"] });
      await post("agent", `${id}/intents`, { tool, args: {}, reason: "r" });
      if (outcome !== null) await post("agent", `${id}/steps/0/outcome`, outcome);
    };
    const done = { status: "succeeded", result: { id: 1 } };
    await made("fine", "crm.get", done);
    await made("uncertain", "crm.get", { status: "uncertain" });
    await made("forgotten", "crm.get", null);
    await made("undo-failed", "crm.create", done);
    await post("operator", "undo-failed/steps/0/compensation", {});
    await post("operator", "undo-failed/steps/0/compensation/outcome", { status: "failed", error: "no" });
    await made("undo-waits", "crm.grant", done);
    expect((await post("operator", "undo-waits/steps/0/compensation", {})).status).toBe(409);
    const needing = async () => {
      const { body } = await own.call("auditor", "GET", "/v1/search/runs?attention=1");
      return body.runs.map(({ run_id }: { run_id: string }) => run_id).sort();
    };
    expect(await needing()).toEqual(["uncertain", "undo-failed", "undo-waits"]);
    await own.env.advance(HOUR);
    expect(await needing()).toEqual(["uncertain", "undo-failed", "undo-waits"]);
    await own.env.advance(1);
    expect(await needing()).toEqual(["forgotten", "uncertain", "undo-failed", "undo-waits"]);
  });
});

describe("GET /v1/search/records", () => {
  it("is for auditors, newest first, with every filter", async () => {
    verifies(
      "core.route.search-records",
      "contract.http.search-records-query",
      "contract.http.search-records-answer",
    );
    expect((await s.call("agent", "GET", "/v1/search/records")).status).toBe(403);
    const { body } = await s.call("auditor", "GET", "/v1/search/records");
    expect(Object.keys(body).sort()).toEqual(["next_cursor", "records"]);
    const all = body.records.map(({ seq }: { seq: number }) => seq);
    expect(all).toEqual([...all].sort((a: number, b: number) => b - a));
    const lines = await s.app.core.store.records({ order: "desc", limit: 100 });
    expect(body.records).toEqual(lines.map((line) => JSON.parse(line)));
    const of = async (query: string) =>
      (await records(query)).map(({ event, run_id }: Record<string, string>) => `${run_id} ${event}`);
    expect(await of("run_id=second")).toEqual(["second blocked", "second succeeded", "second intended"]);
    expect(await of("event=would_block")).toEqual(["third would_block"]);
    expect(new Set(await of("actor=acme-bot"))).toEqual(
      new Set(["second blocked", "second succeeded", "second intended"]),
    );
    expect(await of("tool=unknown.tool&event=intended")).toEqual(["third intended"]);
    expect(await of("since=90m&event=blocked")).toEqual(["second blocked"]);
    expect(await of(`until=${iso(started)}`)).toEqual(["first succeeded", "first intended"]);
    expect(await of("q=ASK%20first")).toEqual(["first succeeded", "first intended"]);
    const seen: number[] = [];
    for (let cursor = ""; ; ) {
      const page = (await s.call("auditor", "GET", `/v1/search/records?limit=2${cursor}`)).body;
      seen.push(...page.records.map(({ seq }: { seq: number }) => seq));
      if (page.next_cursor === null) break;
      cursor = `&cursor=${encodeURIComponent(page.next_cursor)}`;
    }
    expect(seen).toEqual(all);
  });
});

describe("GET /v1/connectors", () => {
  it("is for auditors, and empty on a standalone server", async () => {
    verifies("core.route.connectors-empty");
    expect((await s.call("agent", "GET", "/v1/connectors")).status).toBe(403);
    expect((await s.call("auditor", "GET", "/v1/connectors")).body).toEqual({ connectors: [] });
  });
});

it("a page that ends with the last match has no cursor", async () => {
  for (const [path, list] of [
    ["/v1/search/runs", "runs"],
    ["/v1/search/records", "records"],
    ["/v1/runs", "runs"],
    ["/v1/approvals", "approvals"],
  ] as const) {
    const all = (await s.call("auditor", "GET", `${path}?limit=200`)).body[list].length as number;
    const exact = (await s.call("auditor", "GET", `${path}?limit=${Math.max(1, all)}`)).body;
    expect([path, exact.next_cursor ?? null, exact[list].length]).toEqual([path, null, all]);
    if (all < 2) continue;
    const short = (await s.call("auditor", "GET", `${path}?limit=${all - 1}`)).body;
    expect([path, typeof short.next_cursor]).toEqual([path, "string"]);
  }
});
