/** The routes: who may call them, what they take, and the thread that does the work. */
import { setTimeout as sleep } from "node:timers/promises";
import { beforeAll, describe, expect, it } from "vitest";
import { type TestServer, testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";
import { everythingOf } from "./support.ts";

const MANIFESTS = `
- {tool: crm.get, effect: read, permission: crm.read}
- {tool: pay, effect: compensable, permission: pay, compensation: {tool: refund, args: {id: $result.id}}}
`;
const DENY = "version: 1\nrules: [{id: no-reads, match: {tool: crm.get}, action: deny, reason: no reads}]";

let on: TestServer;
let off: TestServer;
beforeAll(async () => {
  on = await testServer({ manifests: MANIFESTS, config: "capture: {enabled: true}\n" });
  off = await testServer({ manifests: MANIFESTS });
  for (const [run, n] of [
    ["a", 2],
    ["b", 1],
  ] as const) {
    await on.call("agent", "POST", "/v1/runs", { run_id: run, permissions: ["crm.read", "pay"] });
    for (let i = 0; i < n; i++) await call(run, "crm.get", { n: i });
    await call(run, "pay", { amount: 5 });
  }
  await on.call("agent2", "POST", "/v1/runs", { run_id: "empty", permissions: [] });
  await on.app.capture!.drain(60_000);
});

async function call(run: string, tool: string, args: unknown): Promise<void> {
  const body = { tool, args, reason: "because" };
  const { body: decided } = await on.call("agent", "POST", `/v1/runs/${run}/intents`, body);
  const outcome = { status: "succeeded", result: { id: 1 } };
  await on.call("agent", "POST", `/v1/runs/${run}/steps/${decided.step}/outcome`, outcome);
}

const LADDER = ["auditor", "approver", "operator", "admin"];

describe("POST /v1/simulate", () => {
  it("simulates a policy over the captured history", async () => {
    verifies("ops.simulate.http-policy", "ops.simulate.http-active");
    const { status, body } = await on.call("operator", "POST", "/v1/simulate", { policy: DENY });
    expect(status).toBe(200);
    expect(body.summary).toEqual({
      calls: 5,
      runs: 2,
      unchanged: 2,
      newly_blocked: 3,
      newly_needs_approval: 0,
      newly_allowed: 0,
    });
    expect(body.changes[0]).toMatchObject({ by: ["rule no-reads"], calls: 3, runs: 2, run_ids: ["a", "b"] });
    const active = await on.call("operator", "POST", "/v1/simulate", {});
    expect(active.body.summary).toMatchObject({ calls: 5, unchanged: 5 });
  });

  it("sees a call as soon as it was answered, however slowly it is written", async () => {
    verifies("ops.capture-state.stored");
    const s = await testServer({ manifests: MANIFESTS, config: "capture: {enabled: true}\n" });
    await s.call("agent", "POST", "/v1/runs", { run_id: "fresh", permissions: ["crm.read"] });
    const { store } = s.app.core;
    const write = store.transact.bind(store);
    store.transact = (async (unit: Parameters<typeof write>[0]) => {
      await sleep(50);
      return write(unit);
    }) as typeof store.transact;
    const body = { tool: "crm.get", args: {}, reason: "because" };
    await s.call("agent", "POST", "/v1/runs/fresh/intents", body);
    expect((await s.call("operator", "POST", "/v1/simulate", {})).body.summary.calls).toBe(1);
    await s.call("agent", "POST", "/v1/runs/fresh/intents", body);
    expect((await s.call("operator", "POST", "/v1/runs/fresh/replay", {})).body.baseline).toHaveLength(2);
  });

  it("is limited to a run and to a period, which is 7d unless given", async () => {
    verifies("ops.simulate.http-run-id", "ops.simulate.http-since", "ops.limit.simulation-period");
    const calls = async (body: object) =>
      (await on.call("operator", "POST", "/v1/simulate", body)).body.summary.calls;
    expect(await calls({ run_id: "b" })).toBe(2);
    expect(await calls({ run_id: "none" })).toBe(0);
    expect(await calls({ since: "1h" })).toBe(5);
    expect(await calls({ since: "2026-06-16" })).toBe(0);
    const old = await testServer({ manifests: MANIFESTS, config: "capture: {enabled: true, ttl: 30d}\n" });
    await old.call("agent", "POST", "/v1/runs", { run_id: "a", permissions: ["crm.read"] });
    await old.call("agent", "POST", "/v1/runs/a/intents", { tool: "crm.get", args: {}, reason: "x" });
    await old.app.capture!.drain(60_000);
    const seen = async (body: object) =>
      (await old.call("operator", "POST", "/v1/simulate", body)).body.summary.calls;
    old.env.setNow(old.env.now() + 7 * 86_400_000);
    expect(await seen({})).toBe(1);
    old.env.setNow(old.env.now() + 1);
    expect(await seen({})).toBe(0);
    expect(await seen({ since: "8d" })).toBe(1);
  });

  it("is a 404 while capture is off, after the role was checked", async () => {
    verifies("ops.error.simulate-capture-off", "core.error.message-capture");
    const { status, body } = await off.call("operator", "POST", "/v1/simulate", { policy: DENY });
    expect([status, body.error]).toEqual([404, expect.stringContaining("capture is off")]);
    expect((await off.call("auditor", "POST", "/v1/simulate", {})).status).toBe(403);
  });

  it("names line and column of a policy's problems", async () => {
    verifies("ops.error.simulate-invalid-policy");
    const refused = async (policy: string) => {
      const { status, body } = await on.call("operator", "POST", "/v1/simulate", { policy });
      expect(status).toBe(400);
      return body.error as string;
    };
    expect(await refused("version: 1\nrules:\n  - {id: a, action: dney}\n")).toMatch(
      /^policy:3:21: rules\[0\]\.action: .*did you mean "deny"/,
    );
    expect(await refused("version: [")).toMatch(/^policy:1:\d+: /);
    expect(await refused("[".repeat(5_000))).toMatch(/nesting is deeper/);
    expect(await refused("a: &a [x]\nb: [*a, *a]\nversion: 2")).toContain("version");
    const two = await refused("version: 2\nrulez: []\n");
    expect(two.split("\n")).toHaveLength(2);
  });

  it.each([
    [{ policy: 7 }, "policy: must be a string"],
    [{ policy: "" }, "policy: must not be empty"],
    [{ since: "yesterday" }, "is neither a duration"],
    [{ since: "-1d" }, "is neither a duration"],
    [{ run_id: "../x" }, "run_id"],
    [{ polcy: "x" }, "unknown field polcy"],
  ])("refuses %j", async (body, problem) => {
    const answer = await on.call("operator", "POST", "/v1/simulate", body);
    expect([answer.status, answer.body.error]).toEqual([400, expect.stringContaining(problem)]);
  });

  it("is for operators", async () => {
    verifies("core.route.simulate", "ops.simulate.http-operator");
    const statuses = await Promise.all(
      ["agent", ...LADDER].map(
        async (role) => (await on.call(role, "POST", "/v1/simulate", { since: "?" })).status,
      ),
    );
    expect(statuses).toEqual([403, 403, 403, 400, 400]);
  });
});

describe("POST /v1/runs/{id}/replay", () => {
  it("replays with changes and a policy", async () => {
    verifies("ops.replay.http-body", "ops.replay-report.keys");
    const changes = [{ step: 1, tool: "crm.get", path: "$args.n", value: 9 }];
    const { status, body } = await on.call("operator", "POST", "/v1/runs/a/replay", {
      policy: DENY,
      changes,
    });
    expect(status).toBe(200);
    expect(Object.keys(body)).toEqual([
      "baseline",
      "variant",
      "differences",
      "baseline_plan",
      "variant_plan",
    ]);
    expect(body.variant.map((one: { changed: boolean }) => one.changed)).toEqual([false, true, false]);
    expect(body.differences.map((one: { step: number }) => one.step)).toEqual([0, 1]);
    const plain = await on.call("operator", "POST", "/v1/runs/a/replay", {
      changes: [{ path: "$args.n", value: null }],
    });
    expect(plain.body.differences).toEqual([]);
  });

  it("is a 404 for a run without captures", async () => {
    verifies("ops.replay.http-404");
    for (const run of ["empty", "none"]) {
      const { status, body } = await on.call("operator", "POST", `/v1/runs/${run}/replay`, { changes: [] });
      expect([status, body.error]).toEqual([404, `run ${run} has no captured calls that can be replayed`]);
    }
    const answer = await off.call("operator", "POST", "/v1/runs/a/replay", {});
    expect([answer.status, answer.body.error]).toEqual([404, expect.stringContaining("capture is off")]);
  });

  it.each([
    [
      { changes: [{ path: "$args.nope", value: 1 }] },
      "$args.nope does not exist in any captured call of run a",
    ],
    [{ changes: [{ path: "nope", value: 1 }] }, "is not a path"],
    [{ changes: [{ path: "$args.n" }] }, "changes[0].value: is required"],
    [{ changes: [{ step: -1, path: "$args.n", value: 1 }] }, "changes[0].step"],
    [{ changes: "x" }, "changes: must be an array"],
    [{ policy: "version: 7" }, "policy:1:10"],
  ])("refuses %j", async (body, problem) => {
    const answer = await on.call("operator", "POST", "/v1/runs/a/replay", body);
    expect([answer.status, answer.body.error]).toEqual([400, expect.stringContaining(problem)]);
  });

  it("is for operators", async () => {
    verifies("core.route.replay", "ops.replay.http-operator");
    const statuses = await Promise.all(
      ["agent", ...LADDER].map(
        async (role) => (await on.call(role, "POST", "/v1/runs/empty/replay", {})).status,
      ),
    );
    expect(statuses).toEqual([404, 403, 403, 404, 404]);
    expect((await on.call("agent2", "POST", "/v1/runs/empty/replay", {})).status).toBe(403);
  });
});

describe("GET /v1/impact", () => {
  it("previews a call, capture or not", async () => {
    verifies("ops.impact.http", "core.route.impact", "ops.impact.capture-off");
    for (const server of [on, off]) {
      const args = encodeURIComponent('{"n":1}');
      const { status, body } = await server.call(
        "auditor",
        "GET",
        `/v1/impact?tool=crm.get&args=${args}&actor=bot`,
      );
      expect([status, body.decision, body.actor]).toEqual([200, "allow", "bot"]);
    }
    expect((await on.call("auditor", "GET", "/v1/impact?tool=no.such")).body).toMatchObject({
      decision: "block",
      actor: "auditor",
    });
    const statuses = await Promise.all(
      ["agent", ...LADDER].map(async (role) => (await on.call(role, "GET", "/v1/impact?tool=pay")).status),
    );
    expect(statuses).toEqual([403, 200, 200, 200, 200]);
  });

  it.each([
    ["/v1/impact", "tool: is required"],
    ["/v1/impact?tool=", "tool: must not be empty"],
    ["/v1/impact?tool=pay&args={", "args: invalid JSON"],
    ["/v1/impact?tool=pay&args={%22a%22:1,%22a%22:2}", 'args: invalid JSON: duplicate key "a"'],
    ["/v1/impact?tool=pay&policy=x", "unknown field policy"],
  ])("refuses %s", async (path, problem) => {
    const answer = await on.call("auditor", "GET", path);
    expect([answer.status, answer.body.error]).toEqual([400, expect.stringContaining(problem)]);
  });
});

describe("POST /v1/speculate", () => {
  it("ranks plans under a policy and for an actor", async () => {
    verifies("ops.speculate.http", "core.route.speculate");
    const plans = [
      { name: "pay", calls: [{ tool: "pay", args: { amount: 1 }, result: { id: 7 } }] },
      { name: "read", calls: [{ tool: "crm.get" }] },
    ];
    const policy = "version: 1\nrules: [{id: only, match: {tool: crm.get, actor: bot}, action: deny}]";
    const ask = async (body: object) => (await off.call("auditor", "POST", "/v1/speculate", body)).body;
    expect((await ask({ plans, policy, actor: "bot" })).recommended).toBe("pay");
    const other = await ask({ plans, policy, actor: "ann" });
    expect(other.plans.map((plan: { name: string; rank: number }) => [plan.name, plan.rank])).toEqual([
      ["pay", 0],
      ["read", 0],
    ]);
    expect(other.plans[0].rollback_plan.actions[0]).toMatchObject({ args: { id: 7 } });
    const statuses = await Promise.all(
      ["agent", ...LADDER].map(
        async (role) => (await off.call(role, "POST", "/v1/speculate", { plans: [] })).status,
      ),
    );
    expect(statuses).toEqual([403, 400, 400, 400, 400]);
  });

  it.each([
    [{}, "plans: is required"],
    [{ plans: [] }, "plans: the list is empty"],
    [{ plans: [{ name: "a", calls: [] }] }, 'plans[0].calls: "a" has no calls'],
    [{ plans: [{ name: "", calls: [{ tool: "t" }] }] }, "plans[0].name: must not be empty"],
    [{ plans: [{ name: "a", calls: [{ tool: 7 }] }] }, "plans[0].calls[0].tool: must be a string"],
    [{ plans: [{ name: "a", calls: [{ tool: "t", arg: {} }] }] }, "unknown field plans[0].calls[0].arg"],
    [{ plans: [{ name: "a", calls: [{ tool: "t" }] }], policy: "version: x" }, "policy:1:10"],
  ])("refuses %j", async (body, problem) => {
    const answer = await on.call("auditor", "POST", "/v1/speculate", body);
    expect([answer.status, answer.body.error]).toEqual([400, expect.stringContaining(problem)]);
  });

  it("a megabyte of policy is refused by its size or read in time", async () => {
    const plans = [{ name: "a", calls: [{ tool: "crm.get" }] }];
    const rules = Array.from(
      { length: 3_000 },
      (_, i) => `  - {id: r${i}, match: {tool: t${i}.*}, action: deny}`,
    );
    const policy = `version: 1\nrules:\n${rules.join("\n")}\n`;
    const { status, body } = await on.call("auditor", "POST", "/v1/speculate", { plans, policy });
    expect([status, body.recommended]).toEqual([200, "a"]);
    const whole = { plans, policy: policy.repeat(10) };
    expect((await on.call("auditor", "POST", "/v1/speculate", whole)).status).toBe(413);
  });
});

it("none of them changes the ledger or a run", async () => {
  verifies("ops.sandbox.ledger-untouched", "ops.sandbox.runs-untouched");
  const before = await everythingOf(on.app.core.store);
  await on.call("operator", "POST", "/v1/simulate", { policy: DENY });
  await on.call("operator", "POST", "/v1/runs/a/replay", { policy: DENY });
  await on.call("auditor", "GET", "/v1/impact?tool=pay");
  await on.call("auditor", "POST", "/v1/speculate", { plans: [{ name: "p", calls: [{ tool: "pay" }] }] });
  expect(await everythingOf(on.app.core.store)).toBe(before);
});
