/** Decisions over the AuthZEN Authorization API, as another gateway asks for them. */
import { describe, expect, it } from "vitest";
import { testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

const POLICY = `version: 1
rules:
  - {id: big, match: {tool: crm.create}, when: [{path: $args.n, op: gt, value: 10}], action: require_approval, reason: big ones wait}
  - {id: mail, match: {tool: mail.send}, action: deny, reason: no mail}
`;

const s = await testServer({ policy: POLICY, config: "gateway_url: https://pdp.example.com\n" });

const evaluation = (tool: string, args: object = {}, context?: object, id = "agent") => ({
  subject: { type: "agent", id },
  action: { name: tool },
  resource: { type: "tool", id: tool, properties: args },
  ...(context === undefined ? {} : { context }),
});

const ask = (key: string, body: object, headers = {}) =>
  s.call(key, "POST", "/access/v1/evaluation", body, headers);

async function openRun(run_id: string, key = "agent", mode = "enforce") {
  const body = { run_id, mode, permissions: ["crm.read", "crm.write", "mail.send"] };
  expect((await s.call(key, "POST", "/v1/runs", body)).status).toBe(201);
  return run_id;
}

const head = async () => (await s.call("auditor", "GET", "/v1/status")).body.records;

describe("an evaluation", () => {
  it("previews the decision and leaves nothing", async () => {
    verifies("beyond.authzen.preview", "beyond.authzen.decision");
    const run_id = await openRun("previewed");
    const before = await head();
    expect((await ask("agent", evaluation("crm.get"))).body).toEqual({
      decision: true,
      context: { reasons: [] },
    });
    const denied = await ask("agent", evaluation("mail.send", {}, { run_id }));
    expect(denied.body).toMatchObject({ decision: false, context: { reasons: ["no mail"] } });
    const waits = await ask("agent", evaluation("crm.create", { n: 11 }, { run_id }));
    expect(waits.body.decision).toBe(false);
    expect(waits.body.context).not.toHaveProperty("task");
    expect(await head()).toBe(before);
    expect((await s.call("auditor", "GET", "/v1/approvals")).body.approvals).toEqual([]);
    expect((await s.call("agent", "GET", `/v1/runs/${run_id}`)).body.steps).toEqual([]);
  });

  it("is permitted where the mode only observes, with the reasons", async () => {
    verifies("beyond.authzen.decision");
    const run_id = await openRun("observed", "agent", "observe");
    const { body } = await ask("agent", evaluation("mail.send", {}, { run_id, commit: true, reason: "r" }));
    expect(body).toMatchObject({ decision: true, context: { step: 0 } });
    expect(body.context.reasons.join()).toContain("no mail");
  });

  it("is of the caller, or an auditor's preview", async () => {
    verifies("beyond.authzen.subject");
    const other = evaluation("crm.get", {}, undefined, "agent2");
    expect((await ask("agent", other)).status).toBe(403);
    expect((await ask("auditor", other)).body.decision).toBe(true);
    expect((await ask("auditor", evaluation("mail.send", {}, undefined, "agent2"))).body.decision).toBe(
      false,
    );
    const run_id = await openRun("of-agent-2", "agent2");
    const committed = evaluation("crm.get", {}, { run_id, commit: true, reason: "r" }, "agent2");
    for (const key of ["agent", "auditor", "operator", "admin"])
      expect((await ask(key, committed)).status).toBe(403);
    // Another's run under one's own name is as unknown as on every route.
    const foreign = evaluation("crm.get", {}, { run_id, commit: true, reason: "r" });
    expect((await ask("agent", foreign)).status).toBe(404);
    expect((await ask("agent", evaluation("crm.get", {}, { run_id }))).status).toBe(404);
    expect((await ask(null as unknown as string, other)).status).toBe(401);
    expect((await s.call("agent2", "GET", `/v1/runs/${run_id}`)).body.steps).toEqual([]);
  });

  it("with commit is the intent", async () => {
    verifies("beyond.authzen.commit");
    const run_id = await openRun("committed");
    const context = { run_id, commit: true, reason: "to see it" };
    const once = { "idempotency-key": "k1" };
    const first = await ask("agent", evaluation("crm.get", { id: 1 }, context), once);
    expect(first.body).toEqual({ decision: true, context: { reasons: [], step: 0 } });
    expect((await ask("agent", evaluation("crm.get", { id: 1 }, context), once)).body).toEqual(first.body);
    const { records } = (await s.call("auditor", "GET", `/v1/search/records?run_id=${run_id}`)).body;
    expect(records).toMatchObject([{ event: "intended", tool: "crm.get", reason: "to see it" }]);
    const outcome = await s.call("agent", "POST", `/v1/runs/${run_id}/steps/0/outcome`, {
      status: "succeeded",
    });
    expect(outcome.status).toBe(200);
    for (const context of [
      { commit: true, reason: "r" },
      { commit: true, run_id },
    ])
      expect((await ask("agent", evaluation("crm.get", {}, context))).status).toBe(400);
  });

  it("keeps the client's request id and ignores members that it does not know", async () => {
    const body = { ...evaluation("crm.get"), extension: { a: 1 } };
    const answer = await ask("agent", body, { "x-request-id": "bfe9eb29-ab87" });
    expect([answer.status, answer.headers["x-request-id"]]).toEqual([200, "bfe9eb29-ab87"]);
    for (const missing of ["subject", "action", "resource"]) {
      const { [missing]: _gone, ...rest } = body as Record<string, unknown>;
      expect((await ask("agent", rest)).status).toBe(400);
    }
  });
});

describe("several evaluations", () => {
  const several = (body: object) => s.call("agent", "POST", "/access/v1/evaluations", body);
  const decisions = (answer: { body: { evaluations: { decision: boolean }[] } }) =>
    answer.body.evaluations.map(({ decision }) => decision);

  it("take defaults, and stop as the options say", async () => {
    verifies("beyond.authzen.evaluations");
    const { action: _action, ...defaults } = evaluation("crm.get");
    const evaluations = ["crm.get", "mail.send", "crm.get"].map((name) => ({ action: { name } }));
    const all = async (evaluations_semantic?: string) =>
      decisions(await several({ ...defaults, evaluations, options: { evaluations_semantic } }));
    expect(decisions(await several({ ...defaults, evaluations }))).toEqual([true, false, true]);
    expect(await all("execute_all")).toEqual([true, false, true]);
    expect(await all("deny_on_first_deny")).toEqual([true, false]);
    expect(await all("permit_on_first_permit")).toEqual([true]);
    expect((await several(evaluation("crm.get"))).body).toEqual({ decision: true, context: { reasons: [] } });
  });

  it("fail one by one, and are at most 100", async () => {
    verifies("beyond.authzen.evaluations");
    const one = evaluation("crm.get");
    const evaluations = [
      {},
      { subject: { type: "agent", id: "agent2" } },
      { context: { run_id: "none" } },
      { action: {} },
    ];
    const { body } = await several({ ...one, evaluations });
    expect(
      body.evaluations.map(
        ({ context }: { context: { error?: { status: number } } }) => context.error?.status,
      ),
    ).toEqual([undefined, 403, 404, 400]);
    expect(decisions({ body })).toEqual([true, false, false, false]);
    const many = (n: number) => several({ ...one, evaluations: Array.from({ length: n }, () => ({})) });
    expect((await many(100)).status).toBe(200);
    expect((await many(101)).status).toBe(400);
  });
});

it("publishes its metadata without authentication", async () => {
  verifies("beyond.authzen.metadata");
  const { status, body } = await s.call(null, "GET", "/.well-known/authzen-configuration");
  expect(status).toBe(200);
  expect(body).toEqual({
    policy_decision_point: "https://pdp.example.com",
    access_evaluation_endpoint: "https://pdp.example.com/access/v1/evaluation",
    access_evaluations_endpoint: "https://pdp.example.com/access/v1/evaluations",
    access_request_endpoint: "https://pdp.example.com/access/v1/requests",
    capabilities: ["urn:openid:authzen:capability:access-request"],
  });
});

describe("a decision that waits for approval", () => {
  async function waiting(run: string) {
    const run_id = await openRun(run);
    const asked = evaluation("crm.create", { n: 20 }, { run_id, commit: true, reason: "a big one" });
    const { body } = await ask("agent", asked);
    return { asked, context: body.context, decision: body.decision };
  }
  const poll = (key: string, url: string) => s.call(key, "GET", new URL(url).pathname);

  it("answers with a task to poll, and is permitted once approved", async () => {
    verifies("beyond.authzen.task");
    const { asked, context, decision } = await waiting("waits");
    expect(decision).toBe(false);
    expect(context.access_request).toMatchObject({
      requestable: true,
      endpoint: "https://pdp.example.com/access/v1/requests",
    });
    const { context: _context, ...call } = asked;
    const requested = await s.call("agent", "POST", "/access/v1/requests", {
      ...call,
      denial: {
        evaluation_id: context.evaluation_id,
        decision: { decision: false },
        access_request: context.access_request,
      },
    });
    expect(requested.status).toBe(202);
    expect(requested.body.task).toEqual(context.task);
    expect((await poll("agent", context.task.status_endpoint)).body).toMatchObject({
      task: { status: "pending" },
    });
    await s.call("approver", "POST", `/v1/approvals/${context.task.id}/approve`, {});
    const done = (await poll("agent", context.task.status_endpoint)).body;
    expect(done).toMatchObject({
      task: { status: "approved" },
      result: { mode: "reevaluate", approval: { id: context.task.id } },
    });
    expect((await ask("agent", asked)).body).toMatchObject({ decision: true });
  });

  it("ends as denied, without a result", async () => {
    const { context } = await waiting("is-denied");
    await s.call("approver", "POST", `/v1/approvals/${context.task.id}/deny`, {});
    const { body } = await poll("agent", context.task.status_endpoint);
    expect(body.task.status).toBe("denied");
    expect(body).not.toHaveProperty("result");
  });

  it("is a task of its caller and its call alone", async () => {
    verifies("beyond.authzen.task-own");
    const { asked, context } = await waiting("is-mine");
    const denial = { evaluation_id: context.evaluation_id };
    const request = (key: string, body: object) =>
      s.call(key, "POST", "/access/v1/requests", { ...body, denial });
    expect((await poll("agent2", context.task.status_endpoint)).status).toBe(404);
    expect((await poll("auditor", context.task.status_endpoint)).status).toBe(200);
    expect((await request("agent2", evaluation("crm.create", { n: 20 }, {}, "agent2"))).status).toBe(404);
    expect((await request("agent2", asked)).status).toBe(403);
    expect((await request("agent", evaluation("crm.create", { n: 21 }))).status).toBe(400);
    expect((await request("agent", evaluation("crm.get", { n: 20 }))).status).toBe(400);
    expect((await request("agent", asked)).status).toBe(202);
  });
});
