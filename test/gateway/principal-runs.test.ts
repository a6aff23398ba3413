/** Runs without a session: a principal's, a call's own, and the run of a request that is still open. */
import { describe, expect, it } from "vitest";
import { MemoryStore } from "../../src/store/memory/store.ts";
import { verifies } from "../support/verifies.ts";
import {
  type AnyResult,
  call,
  type GatewayTest,
  type GatewayTestOptions,
  testGateway,
} from "./support/gateway.ts";

const ASK =
  "version: 1\nrules: [{id: ask, match: {tool: create}, action: require_approval, reason: a person must look}]\n";
const run = ({ _meta }: AnyResult) => _meta["svc/run_id"] as string;
const gateway = (runs: Record<string, unknown>, more: GatewayTestOptions = {}) =>
  testGateway({ policy: ASK, ...more, config: { runs } });
const approve = async (g: GatewayTest, approval_id: string) =>
  call(await g.connect("approver", { path: "/operator/mcp" }), "svc.approve_action", { approval_id });

describe("runs by principal", () => {
  it(`joins all sessions of a principal ${verifies("beyond.runs.by-principal")}`, async () => {
    const g = await gateway({ by: "principal" });
    const ids = [
      run(await call(await g.connect("agent"), "echo")),
      run(await call(await g.connect("agent"), "echo")),
      run(await call(await g.connect("agent", { mode: "modern" }), "echo")),
    ];
    expect(new Set(ids).size).toBe(1);
    expect(run(await call(await g.connect("agent2"), "echo"))).not.toBe(ids[0]);
  });

  it(`begins a new run after a rest ${verifies("beyond.runs.idle")}`, async () => {
    const g = await gateway({ idle: "1s" });
    const client = await g.connect("agent", { mode: "modern" });
    const first = run(await call(client, "echo"));
    const { env } = g.service.core;
    const used = env.now();
    while (env.now() - used < 1_000) await env.sleep(100);
    expect(run(await call(client, "echo"))).not.toBe(first);
  });

  it(`continues over a restart and next to another gateway, under the same scope alone ${verifies("beyond.runs.restart", "beyond.runs.scope")}`, async () => {
    const store = new MemoryStore();
    const close = store.close.bind(store);
    store.close = async () => {};
    const first = await gateway({}, { store });
    const id = run(await call(await first.connect("agent", { mode: "modern" }), "echo"));
    const beside = await gateway({}, { store });
    expect(run(await call(await beside.connect("agent", { mode: "modern" }), "echo"))).toBe(id);
    await first.running.stop();
    const observing = await gateway({}, { store, mode: "observe" });
    expect(run(await call(await observing.connect("agent", { mode: "modern" }), "echo"))).not.toBe(id);
    await close();
  });
});

describe("runs by call", () => {
  it(`gives each call its own, in sessions too ${verifies("beyond.runs.by-call")}`, async () => {
    const g = await gateway({ by: "call" });
    for (const mode of ["legacy", "modern"] as const) {
      const client = await g.connect("agent", { mode });
      expect(run(await call(client, "echo"))).not.toBe(run(await call(client, "echo")));
    }
  });
});

describe("a call whose request is still open", () => {
  it(`continues in the request's run ${verifies("beyond.runs.same-call")}`, async () => {
    const g = await gateway({ by: "call" });
    const client = await g.connect("agent", { mode: "modern" });
    const blocked = await call(client, "create", { n: 1 });
    const again = await call(client, "create", { n: 1 });
    expect([run(again), again._meta["svc/approval_id"]]).toEqual([
      run(blocked),
      blocked._meta["svc/approval_id"],
    ]);
    expect(run(await call(client, "create", { n: 2 }))).not.toBe(run(blocked));
    const foreign = await call(await g.connect("agent2", { mode: "modern" }), "create", { n: 1 });
    expect(run(foreign)).not.toBe(run(blocked));
    await approve(g, blocked._meta["svc/approval_id"]);
    const done = await call(client, "create", { n: 1 });
    expect(done._meta).toMatchObject({ "svc/decision": "allow", "svc/run_id": run(blocked) });
    expect(run(await call(client, "create", { n: 1 }))).not.toBe(run(blocked));
  });

  it("also from a session that was opened after the gateway restarted", async () => {
    const store = new MemoryStore();
    const close = store.close.bind(store);
    store.close = async () => {};
    const first = await gateway({}, { store });
    const blocked = await call(await first.connect("agent"), "create", { n: 3 });
    await first.running.stop();
    const second = await gateway({}, { store });
    await approve(second, blocked._meta["svc/approval_id"]);
    const client = await second.connect("agent");
    const own = run(await call(client, "echo"));
    expect((await call(client, "create", { n: 3 }))._meta).toMatchObject({
      "svc/decision": "allow",
      "svc/run_id": run(blocked),
    });
    expect(run(await call(client, "echo"))).toBe(own);
    await second.running.stop();
    await close();
  });
});
