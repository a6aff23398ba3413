/** An agent that rolls back its own run: what its key lets it do, and how little its word counts. */
import { beforeAll, describe, expect, it } from "vitest";
import { connect } from "../../src/index.ts";
import { afterInput, undoesAll } from "../support/commands.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

const MANIFESTS = `
- tool: thing.make
  effect: compensable
  permission: p
  compensation: {tool: thing.unmake, args: {id: $result.id}}
  verification: {tool: thing.get, args: {id: $result.id}, expect: {gone: true}, retries: 0}
- tool: thing.pay
  effect: compensable
  permission: p
  compensation: {tool: thing.unpay, args: {id: $result.id}, requires_approval: true}
- {tool: doc.read, effect: read, permission: p}
- tool: doc.write
  effect: compensable
  permission: p
  before: {tool: doc.read, args: {id: $args.id}}
  compensation: {tool: doc.write, args: {id: $args.id, text: $before.text}, requires_approval: true}
`;
const compensator = undoesAll();
const reader = afterInput("console.log(JSON.stringify({gone: true}))");

let s: TestServer;
let url: string;
let n = 0;
beforeAll(async () => {
  s = await testServer({
    manifests: MANIFESTS,
    config: `rollback: {compensator_cmd: "${compensator}", reader_cmd: "${reader}"}\n`,
    keys: [
      { name: "self", role: "agent", self_rollback: true },
      { name: "self-reader", roles: ["agent", "auditor"], self_rollback: true },
    ],
  });
  url = await s.http.listen({ port: 0, host: "127.0.0.1" });
});

/** A run of this key with these calls, each of them done. */
async function made(key: string, tools: string[], outcome: object = {}): Promise<string> {
  const id = `self-${n++}`;
  await s.call(key, "POST", "/v1/runs", { run_id: id, permissions: ["p"] });
  for (const [i, tool] of tools.entries()) {
    await s.call(key, "POST", `/v1/runs/${id}/intents`, { tool, args: { id: i }, reason: "r" });
    const done = { status: "succeeded", result: { id: i }, ...outcome };
    expect((await s.call(key, "POST", `/v1/runs/${id}/steps/${i}/outcome`, done)).status).toBe(200);
  }
  return id;
}
const begin = (key: string, id: string, body: object = {}) =>
  s.call(key, "POST", `/v1/runs/${id}/steps/0/compensation`, body);
const facts = ({ headers }: { headers: Record<string, unknown> }) =>
  JSON.parse(decodeURIComponent(String(headers["svc-facts"])));
const complete = (
  key: string,
  id: string,
  body: object = { status: "succeeded", observed: { gone: true } },
) => s.call(key, "POST", `/v1/runs/${id}/steps/0/compensation/outcome`, body);
async function undoTrail(id: string): Promise<string[]> {
  const json = { accept: "application/json" };
  const { body } = await s.call("auditor", "GET", `/v1/runs/${id}/export`, undefined, json);
  return body.records
    .filter(({ event }: { event: string }) => /compensat|verif/.test(event))
    .map(({ event, actor, detail }: Record<string, string>) => `${event} ${actor} ${detail ?? ""}`.trim());
}

describe("who may", () => {
  it("is an agent whose key allows it, on its own run alone", async () => {
    verifies("beyond.self.allowed", "beyond.self.refused");
    const plain = await made("agent", ["thing.make"]);
    for (const [method, path, body] of [
      ["GET", "plan", undefined],
      ["POST", "rollback", {}],
      ["GET", "rollback", undefined],
      ["POST", "steps/0/compensation", {}],
      ["POST", "steps/0/compensation/outcome", { status: "succeeded" }],
    ] as const) {
      const asked = async (key: string) =>
        (await s.call(key, method, `/v1/runs/${plain}/${path}`, body)).status;
      expect([path, await asked("agent"), await asked("self")]).toEqual([path, 403, 404]);
      // A reader of every run can still roll back only its own.
      if (method === "POST") expect([path, await asked("self-reader")]).toEqual([path, 403]);
    }
    const own = await made("self", ["thing.make"]);
    expect(await s.call("self", "GET", `/v1/runs/${own}/plan`)).toMatchObject({
      status: 200,
      body: { fully_reversible: true, actions: [{ step: 0, kind: "compensate", args: { id: 0 } }] },
    });
    expect((await s.call("self", "GET", `/v1/runs/${own}/report`)).status).toBe(403);
  });

  it("is shown by the key's entry, and taken away with it", async () => {
    verifies("beyond.self.key");
    const made = await s.call("admin", "POST", "/v1/keys", {
      name: "later",
      role: "agent",
      self_rollback: true,
    });
    expect(made).toMatchObject({ status: 201, body: { self_rollback: true } });
    const { index, fingerprint } = made.body;
    const set = (self_rollback: unknown) =>
      s.call("admin", "PATCH", `/v1/keys/${index}`, { self_rollback }, { "if-match": fingerprint });
    expect((await set("yes")).status).toBe(400);
    expect((await set(false)).body).not.toHaveProperty("self_rollback");
    const { body } = await s.call("admin", "GET", "/v1/keys");
    const shown = body.keys.filter((key: object) => "self_rollback" in key);
    expect(shown.map(({ name }: { name: string }) => name)).toEqual(["self", "self-reader"]);
  });
});

describe("its own undo", () => {
  it("is self-reported, and confirms nothing", async () => {
    verifies("beyond.self.reported", "beyond.self.never-verified");
    for (const key of ["self", "self-reader"]) {
      const id = await made(key, ["thing.make"]);
      expect((await begin(key, id)).status).toBe(200);
      expect((await complete(key, id)).body).toEqual({ step: 0, status: "compensated", unverified: true });
      expect(await undoTrail(id)).toEqual([
        `compensating ${key} by thing.unmake, self-reported`,
        `unverified ${key} self-reported`,
        `compensated ${key} self-reported`,
      ]);
    }
    const failing = await made("self", ["thing.make"]);
    await begin("self", failing);
    await complete("self", failing, { status: "succeeded", observed: { gone: false } });
    expect((await undoTrail(failing)).slice(1).every((line) => line.endsWith(", self-reported"))).toBe(true);
    // An operator's undo of the same kind is recorded as ever.
    const plain = await made("self", ["thing.make"]);
    await begin("operator", plain);
    expect((await complete("operator", plain)).body).toEqual({ step: 0, status: "compensated" });
    expect(await undoTrail(plain)).toEqual([
      "compensating operator by thing.unmake",
      "verified operator",
      "compensated operator",
    ]);
  });

  it("is self-reported through the server's compensator, too", async () => {
    verifies("beyond.self.reported", "beyond.self.never-verified", "beyond.self.waits");
    const id = await made("self", ["thing.make"]);
    const start = (body: object) => s.call("self", "POST", `/v1/runs/${id}/rollback`, body);
    expect((await start({})).body).toMatchObject({ dry_run: true });
    expect((await start({ confirm: true, approve_compensations: true })).status).toBe(403);
    expect((await start({ confirm: true })).status).toBe(202);
    const job = async () => (await s.call("self", "GET", `/v1/runs/${id}/rollback`)).body.job;
    await until(async () => (await job()).state !== "running", "the job to end");
    expect(await job()).toMatchObject({ state: "done", by: "self", report: { unverified: [0] } });
    expect(await undoTrail(id)).toContain("unverified self self-reported");
  });

  it("waits for approvals, regardless of the reported state", async () => {
    verifies("beyond.self.waits");
    const paid = await made("self", ["thing.pay"]);
    const first = await begin("self", paid);
    const { approval_id } = facts(first);
    expect(first).toMatchObject({ status: 409, body: { error: expect.stringContaining(approval_id) } });
    expect((await s.call("self", "POST", `/v1/approvals/${approval_id}/approve`, {})).status).toBe(403);
    await s.call("approver", "POST", `/v1/approvals/${approval_id}/approve`, {});
    expect((await begin("self", paid)).status).toBe(200);
    const state = { before: { text: "old" }, after: { text: "new" } };
    const written = await made("self", ["doc.write"], state);
    const claimed = await begin("self", written, { current: { text: "old" } });
    expect(claimed.status).toBe(409);
    await s.call("approver", "POST", `/v1/approvals/${facts(claimed).approval_id}/approve`, {});
    expect((await begin("self", written, { current: { text: "old" } })).body).toMatchObject({
      status: "compensated",
    });
    expect((await undoTrail(written)).at(-1)).toMatch(/^compensated self nothing to do: .*, self-reported$/);
  });

  it("cannot overwrite, or continue while the agent is halted", async () => {
    verifies("beyond.self.no-overwrite", "beyond.self.halted");
    const state = { before: { text: "old" }, after: { text: "new" } };
    const id = await made("self", ["doc.write"], state);
    const foreign = await begin("self", id, { current: { text: "foreign" } });
    expect(facts(foreign)).toEqual({ conflict: true, current_hash: expect.any(String) });
    expect(foreign.body).toEqual({ error: expect.stringMatching(/^conflict: /) });
    const word = { reason: "mine", current_hash: facts(foreign).current_hash };
    const over = await begin("self", id, { current: { text: "foreign" }, overwrite: true, ...word });
    expect(over).toMatchObject({ status: 403, body: { error: expect.stringContaining("ask an operator") } });
    const job = { confirm: true, overwrite: 0, ...word };
    expect((await s.call("self", "POST", `/v1/runs/${id}/rollback`, job)).status).toBe(403);
    expect(await undoTrail(id)).toEqual([]);
    await s.call("admin", "POST", "/v1/halt", { actor: "self", reason: "enough" });
    expect((await begin("self", id, { current: { text: "new" } })).body.error).toContain(
      "kill switch: enough",
    );
    await s.call("admin", "POST", "/v1/resume", {});
  });
});

describe("an undo that the policy denies the agent", () => {
  const FLOWS = `version: 1
rules:
  - {id: no-unpay, match: {tool: thing.unpay}, action: deny, reason: agents do not refund}
flows:
  - {id: leak, after: {tool: doc.read}, then: {tool: thing.unmake}, within: run, action: deny, reason: nothing leaves after a read}
`;
  let denying: TestServer;
  beforeAll(async () => {
    denying = await testServer({
      manifests: MANIFESTS,
      policy: FLOWS,
      config: `rollback: {compensator_cmd: "${compensator}", reader_cmd: "${reader}"}\n`,
      keys: [{ name: "self", role: "agent", self_rollback: true }],
    });
    await denying.http.listen({ port: 0, host: "127.0.0.1" });
  });
  async function run(id: string, tools: string[], mode = "enforce") {
    await denying.call("self", "POST", "/v1/runs", { run_id: id, permissions: ["p"], mode });
    for (const [i, tool] of tools.entries()) {
      await denying.call("self", "POST", `/v1/runs/${id}/intents`, { tool, args: { id: i }, reason: "r" });
      const done = { status: "succeeded", result: { id: i } };
      await denying.call("self", "POST", `/v1/runs/${id}/steps/${i}/outcome`, done);
    }
  }
  const start = (key: string, id: string, step: number) =>
    denying.call(key, "POST", `/v1/runs/${id}/steps/${step}/compensation`, {});

  it("is not handed to it, and is to an operator", async () => {
    verifies("beyond.self.denied-undo");
    await run("leak", ["doc.read", "thing.make", "thing.pay"]);
    const flow = await start("self", "leak", 1);
    expect(flow.status).toBe(409);
    expect(flow.body.error).toContain(
      "the policy denies thing.unmake to this agent: nothing leaves after a read",
    );
    expect(flow.text).not.toContain("idempotency_key");
    const rule = await start("self", "leak", 2);
    expect(rule.body.error).toContain("the policy denies thing.unpay to this agent: agents do not refund");
    expect(await start("operator", "leak", 1)).toMatchObject({ status: 200, body: { tool: "thing.unmake" } });
  });

  it("is listed as failed by its own rollback, through the server and through the library", async () => {
    verifies("beyond.self.denied-undo");
    await run("job", ["thing.make", "doc.read", "thing.make"]);
    await denying.call("self", "POST", "/v1/runs/job/rollback", { confirm: true });
    const job = async () => (await denying.call("self", "GET", "/v1/runs/job/rollback")).body.job;
    await until(async () => (await job()).state !== "running", "the job");
    const failed = [2, 0].map((step) => ({ step, error: expect.stringContaining("denies thing.unmake") }));
    expect((await job()).report).toMatchObject({ compensated: [], failed, complete: false });
    const port = (denying.http.server.address() as { port: number }).port;
    const svc = await connect({ url: `http://127.0.0.1:${port}`, key: "self" });
    const calls: string[] = [];
    const report = await (await svc.attach("job")).rollback({
      compensator: async ({ tool }: { tool: string }) => void calls.push(tool),
    });
    expect(report).toMatchObject({ failed, complete: false });
    expect(calls).toEqual([]);
    const events = await denying.app.core.store.records({ run_id: "job", limit: 100 });
    expect(events.join()).not.toContain('"compensating"');
  });

  it("is handed to it in a run that is only observed, as the call itself would be", async () => {
    verifies("beyond.self.denied-undo");
    await run("seen", ["doc.read", "thing.make"], "observe");
    expect((await start("self", "seen", 1)).status).toBe(200);
  });
});

it("the library rolls back its own run, and withdraws a plan", async () => {
  verifies("beyond.self.library", "beyond.plan.withdraw-surfaces");
  const svc = await connect({ url, key: "self" });
  const run = await svc.run({ permissions: ["p"] });
  await run.call({ tool: "thing.make", args: {}, reason: "r" }, () => ({ id: 7 }));
  expect((await run.plan()).actions).toMatchObject([{ step: 0, kind: "compensate" }]);
  const undone: unknown[] = [];
  const report = await run.rollback({
    compensator: async ({ args }) => void undone.push(args),
    verifier: async () => ({ gone: true }),
  });
  expect([undone, report.compensated, report.unverified]).toEqual([[{ id: 7 }], [0], [0]]);
  const plan = await run.propose([{ tool: "thing.make", args: {} }]);
  expect(await run.withdraw(plan.id)).toMatchObject({ id: plan.id, note: "withdrawn" });
  await expect(run.withdraw(plan.id)).rejects.toMatchObject({ code: "conflict" });
  await svc.close();
  const other = await connect({ url, key: "agent" });
  const refused = await other.run({ permissions: ["p"] });
  await expect(refused.plan()).rejects.toMatchObject({ code: "forbidden" });
  await other.close();
});
