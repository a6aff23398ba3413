/** Rollback of a run with what other runs built on it: the preview with its evidence, and the job. */
import { describe, expect, it } from "vitest";
import { resumeJobs } from "../../src/rollback/job.ts";
import { acquireLease, releaseLease } from "../../src/rollback/lease.ts";
import type { CompensationCall } from "../../src/rollback/ports.ts";
import { type Answer, type TestServer, testServer } from "../support/server.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

const MANIFESTS = `
- {tool: doc.get, effect: read, permission: p, risk: {source: docs}}
- tool: doc.put
  effect: compensable
  permission: p
  before: {tool: doc.get, args: {id: $args.id}}
  compensation: {tool: doc.put, args: {id: $args.id, text: $before.text}, kind: inverse}
- tool: doc.use
  effect: compensable
  permission: p
  requires: [doc.put]
  compensation: {tool: doc.unuse, args: {id: $args.id}}
- {tool: mail.send, effect: irreversible, permission: p, risk: {sink: internet}}
`;
const POLICY = `version: 1
flows:
  - {id: f, after: {source: none}, then: {sink: none}, carries: true, within: 24h}
`;

/** Documents that agents share, the calls on them, and the undos in their order. */
class World {
  readonly docs = new Map<string, string>();
  readonly undone: string[] = [];
  readonly s: TestServer;
  constructor(s: TestServer) {
    this.s = s;
    s.app.jobTools = {
      compensator: async (call) => this.undo(call),
      reader: async ({ arguments: args }) => this.read((args as { id: string }).id),
    };
  }
  static async open(): Promise<World> {
    const keys = [
      { name: "ann", role: "agent", max_permissions: ["p"], self_rollback: true },
      { name: "ben", role: "agent", max_permissions: ["p"] },
      { name: "of-east", role: "agent", max_permissions: ["p"], tenant: "east" },
      { name: "east-operator", roles: ["operator"], tenant: "east", tenant_only: true },
    ];
    return new World(await testServer({ manifests: MANIFESTS, policy: POLICY, keys }));
  }
  read = (id: string) => ({ text: this.docs.get(id) ?? "" });
  async undo({ run_id, step, tool, args }: CompensationCall): Promise<void> {
    const { id, text } = args as { id: string; text: string };
    if (tool === "doc.put") this.docs.set(id, text);
    this.undone.push(`${run_id}/${step}`);
  }
  async run(id: string, key = "ann"): Promise<string> {
    const opened = await this.s.call(key, "POST", "/v1/runs", { run_id: id, permissions: ["p"] });
    expect(opened.status).toBe(201);
    return id;
  }
  async call(run: string, tool: string, args: object, result: unknown, key = "ann"): Promise<number> {
    const asked = { tool, args, reason: "r" };
    const { body } = await this.s.call(key, "POST", `/v1/runs/${run}/intents`, asked);
    expect(body.decision).toBe("allow");
    const states = tool === "doc.put" ? this.write(args as { id: string; text: string }) : {};
    const outcome = { status: "succeeded", result, ...states };
    const path = `/v1/runs/${run}/steps/${body.step}/outcome`;
    expect((await this.s.call(key, "POST", path, outcome)).status).toBe(200);
    return body.step;
  }
  private write({ id, text }: { id: string; text: string }) {
    const before = this.read(id);
    this.docs.set(id, text);
    return { before, after: this.read(id) };
  }
  put = (run: string, id: string, text: string, key = "ann") =>
    this.call(run, "doc.put", { id, text }, { ok: true }, key);
  get = (run: string, id: string, key = "ann") => this.call(run, "doc.get", { id }, this.read(id), key);
  plan = (run: string, key = "auditor") => this.s.call(key, "GET", `/v1/runs/${run}/plan?dependents=1`);
  async dependents(run: string): Promise<Answer["body"][]> {
    const { status, body } = await this.plan(run);
    expect(status).toBe(200);
    return body.dependents;
  }
  rollback = (run: string, body: object, key = "operator") =>
    this.s.call(key, "POST", `/v1/runs/${run}/rollback`, { confirm: true, ...body });
  async finished(run: string): Promise<Answer["body"]> {
    const job = async () => (await this.s.call("auditor", "GET", `/v1/runs/${run}/rollback`)).body.job;
    await until(async () => (await job()).state !== "running", "the job to end");
    return job();
  }
  async rolledBack(run: string, chosen: { run_id: string; step: number }[]): Promise<Answer["body"]> {
    const started = await this.rollback(run, { with: chosen });
    expect(started.status).toBe(202);
    return (await this.finished(run)).report;
  }
}

describe("the preview of dependents", () => {
  it("lists later calls of any run on a resource that the run changed", async () => {
    verifies("beyond.cascade.dependents", "beyond.cascade.because");
    const w = await World.open();
    const early = await w.run("early", "ben");
    await w.put(early, "x", "0", "ben");
    const bad = await w.run("bad");
    await w.put(bad, "x", "1");
    const late = await w.run("late", "ben");
    await w.put(late, "x", "2", "ben");
    await w.put(late, "y", "3", "ben");
    expect(await w.dependents(bad)).toEqual([
      {
        run_id: late,
        step: 0,
        tool: "doc.put",
        kind: "compensate",
        because: [{ run_id: bad, step: 0, kind: "resource" }],
      },
    ]);
    expect((await w.s.call("auditor", "GET", `/v1/runs/${bad}/plan`)).body).not.toHaveProperty("dependents");
  });

  it("follows values from call to call, names their kinds and never a value", async () => {
    verifies("beyond.cascade.chain", "beyond.cascade.because");
    const w = await World.open();
    const bad = await w.run("bad");
    await w.put(bad, "x", "pay to eve@evil.example");
    const reader = await w.run("reader", "ben");
    await w.get(reader, "x", "ben");
    await w.put(reader, "z", "eve@evil.example", "ben");
    await w.call(reader, "mail.send", { to: "eve@evil.example" }, {}, "ben");
    const { body, text } = await w.plan(bad);
    const fed = { run_id: reader, step: 0, kind: "address" };
    expect(body.dependents).toMatchObject([
      {
        run_id: reader,
        step: 2,
        tool: "mail.send",
        kind: "unrecoverable",
        because: [{ ...fed, path: "$args.to" }],
      },
      {
        run_id: reader,
        step: 1,
        tool: "doc.put",
        kind: "compensate",
        because: [{ ...fed, path: "$args.text" }],
      },
      {
        run_id: reader,
        step: 0,
        tool: "doc.get",
        kind: "skip",
        because: [{ run_id: bad, step: 0, kind: "resource" }],
      },
    ]);
    expect(text).not.toContain("evil");
  });

  it("lists calls of their runs that need a dependent", async () => {
    verifies("beyond.cascade.chain");
    const w = await World.open();
    const bad = await w.run("bad");
    await w.put(bad, "x", "1");
    const late = await w.run("late");
    await w.put(late, "x", "2");
    await w.call(late, "doc.use", { id: "x" }, {});
    expect(await w.dependents(bad)).toMatchObject([
      { run_id: late, step: 1, because: [{ run_id: late, step: 0, kind: "dependency" }] },
      { run_id: late, step: 0 },
    ]);
  });

  it("needs an auditor, and stays within the tenant", async () => {
    verifies("beyond.cascade.auditor", "beyond.cascade.operator");
    const w = await World.open();
    const bad = await w.run("bad");
    await w.put(bad, "x", "1");
    const other = await w.run("other", "of-east");
    await w.put(other, "x", "2", "of-east");
    expect(await w.dependents(bad)).toEqual([]);
    expect((await w.plan(bad, "ann")).status).toBe(403);
    expect((await w.s.call("ann", "GET", `/v1/runs/${bad}/plan`)).status).toBe(200);
    expect((await w.plan(bad, "east-operator")).status).toBe(404);
    const foreign = await w.rollback(other, { with: [{ run_id: bad, step: 0 }] }, "east-operator");
    expect(foreign.status).toBe(404);
    // Everybody in the run's tenant reads the job's report, so it covers no run of another tenant.
    for (const [run_id, chosen] of [
      [other, bad],
      [bad, other],
    ] as const) {
      const crossing = await w.rollback(run_id, { with: [{ run_id: chosen, step: 0 }], confirm: true });
      expect(crossing).toMatchObject({
        status: 404,
        body: { error: expect.stringContaining("another tenant") },
      });
    }
  });

  it("forgets runs with what they left", async () => {
    verifies("beyond.cascade.purged");
    const w = await World.open();
    const bad = await w.run("bad");
    await w.put(bad, "x", "eve@evil.example");
    const reader = await w.run("reader");
    await w.get(reader, "x");
    await w.put(reader, "x", "eve@evil.example");
    const { store } = w.s.app.core;
    const listed = async () =>
      JSON.stringify([
        await store.list("resource_calls", { limit: 100 }),
        await store.list("value_feeds", { limit: 100 }),
      ]);
    expect(await listed()).toContain(`"${reader}"`);
    expect(await listed()).not.toContain("evil");
    await w.s.call("operator", "POST", "/v1/runs/none/rollback", {});
    await w.rolledBack(reader, []);
    expect((await w.dependents(bad)).map(({ step }) => step)).toEqual([0]);
  });
});

describe("a rollback with steps of other runs", () => {
  it("is one job that undoes all of them, newest first", async () => {
    verifies("beyond.cascade.with");
    const w = await World.open();
    w.docs.set("x", "good");
    const [bad, b, c] = [await w.run("bad"), await w.run("b", "ben"), await w.run("c", "ben")];
    await w.put(bad, "x", "1");
    await w.put(b, "x", "2", "ben");
    await w.put(b, "other", "stays", "ben");
    await w.put(bad, "x", "3");
    await w.put(c, "x", "4", "ben");
    const chosen = (await w.dependents(bad)).map(({ run_id, step }) => ({ run_id, step }));
    expect(chosen).toEqual([
      { run_id: c, step: 0 },
      { run_id: b, step: 0 },
    ]);
    const dry = await w.rollback(bad, { with: chosen, confirm: false });
    expect(dry.body).toMatchObject({
      dry_run: true,
      plan: { run_id: bad, dependents: [{ run_id: c }, { run_id: b }] },
    });
    const report = await w.rolledBack(bad, chosen);
    expect(report).toMatchObject({
      complete: true,
      compensated: [1, 0],
      with: [
        { run_id: c, compensated: [0], complete: true },
        { run_id: b, compensated: [0], complete: true },
      ],
    });
    expect(w.undone).toEqual(["c/0", "bad/1", "b/0", "bad/0"]);
    expect([...w.docs]).toEqual([
      ["x", "good"],
      ["other", "stays"],
    ]);
    const b_steps = (await w.s.call("auditor", "GET", "/v1/runs/b")).body.steps;
    expect(b_steps.map(({ status }: { status: string }) => status)).toEqual(["compensated", "succeeded"]);
  });

  it("leaves steps that were not chosen, and what they need", async () => {
    verifies("beyond.cascade.only", "beyond.cascade.conflict");
    const w = await World.open();
    const [bad, b] = [await w.run("bad"), await w.run("b")];
    await w.put(bad, "x", "1");
    await w.put(b, "x", "2");
    await w.call(b, "doc.use", { id: "x" }, {});
    const report = await w.rolledBack(bad, [{ run_id: b, step: 0 }]);
    expect(report).toMatchObject({
      complete: false,
      failed: [{ step: 0, conflict: true }],
      with: [{ run_id: b, deferred: [{ step: 0, blocked_by: [1] }], complete: false }],
    });
    expect(w.docs.get("x")).toBe("2");
    expect(w.undone).toEqual([]);
    await w.rolledBack(
      bad,
      [0, 1].map((step) => ({ run_id: b, step })),
    );
    expect([w.docs.get("x"), w.undone]).toEqual(["", ["b/1", "b/0", "bad/0"]]);
  });

  it("leaves alone what somebody outside changed since", async () => {
    verifies("beyond.cascade.conflict");
    const w = await World.open();
    const [bad, b] = [await w.run("bad"), await w.run("b")];
    await w.put(bad, "x", "1");
    await w.put(b, "x", "2");
    w.docs.set("x", "by hand");
    const report = await w.rolledBack(bad, [{ run_id: b, step: 0 }]);
    expect(report).toMatchObject({
      failed: [{ step: 0, conflict: true }],
      with: [{ run_id: b, failed: [{ step: 0, conflict: true }] }],
    });
    expect(w.docs.get("x")).toBe("by hand");
  });

  it("is a conflict while one of the runs is being rolled back, and then takes no lease", async () => {
    verifies("beyond.cascade.one");
    const w = await World.open();
    const { core } = w.s.app;
    const [bad, b] = [await w.run("bad"), await w.run("b")];
    await w.put(bad, "x", "1");
    await w.put(b, "x", "2");
    const lease = await acquireLease(core, b);
    const asked = { with: [{ run_id: b, step: 0 }] };
    const refused = await w.rollback(bad, asked);
    expect([refused.status, refused.body.error]).toEqual([409, expect.stringContaining("rollback of run b")]);
    await releaseLease(core, lease);
    expect(await core.store.list("leases", { limit: 10 })).toEqual([]);
    expect((await w.rollback(bad, asked)).status).toBe(202);
    await w.finished(bad);
    await until(
      async () => (await core.store.list("leases", { limit: 10 })).length === 0,
      "the leases to end",
    );
  });

  it("is an operator's, for steps that exist, and at most 1,000", async () => {
    verifies("beyond.cascade.operator", "beyond.cascade.maximum");
    const w = await World.open();
    const bad = await w.run("bad");
    await w.put(bad, "x", "1");
    expect((await w.rollback(bad, { with: [] }, "ann")).status).toBe(403);
    expect((await w.rollback(bad, { with: [] }, "auditor")).status).toBe(403);
    expect((await w.rollback(bad, { with: [{ run_id: bad, step: 7 }] })).status).toBe(404);
    expect((await w.rollback(bad, { with: [{ run_id: "no-such", step: 0 }] })).status).toBe(404);
    const many = Array.from({ length: 1_001 }, () => ({ run_id: bad, step: 0 }));
    expect((await w.rollback(bad, { with: many })).status).toBe(400);
    expect((await w.rollback(bad, { with: [], children: true })).status).toBe(400);
  });

  it("is resumed with all of its runs", async () => {
    verifies("beyond.cascade.resumed");
    const w = await World.open();
    const { core, jobTools } = w.s.app;
    const [bad, b] = [await w.run("bad"), await w.run("b")];
    await w.put(bad, "x", "1");
    await w.put(b, "x", "2");
    const stop = new AbortController();
    w.s.app.jobTools = {
      ...jobTools!,
      stop: stop.signal,
      compensator: async (call) => {
        await w.undo(call);
        stop.abort();
      },
    };
    expect((await w.rollback(bad, { with: [{ run_id: b, step: 0 }] })).status).toBe(202);
    await until(async () => (await core.store.list("leases", { limit: 10 })).length === 0, "the job to stop");
    expect(w.undone).toEqual(["b/0"]);
    const [resumed] = await resumeJobs(core, jobTools!);
    const ended = await resumed!.done;
    expect(ended?.report).toMatchObject({ complete: true, compensated: [0], with: [{ compensated: [0] }] });
    expect([w.docs.get("x"), w.undone]).toEqual(["", ["b/0", "bad/0"]]);
  });
});
