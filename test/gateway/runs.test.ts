/** Which run a call belongs to: named, the session's own, or the request's own. */
import { beforeAll, describe, expect, it } from "vitest";
import type { CallerPrincipal } from "../../src/govern/roles.ts";
import { verifies } from "../support/verifies.ts";
import { call, type GatewayTest, testGateway, toolNames, until } from "./support/gateway.ts";

let g: GatewayTest;
beforeAll(async () => {
  g = await testGateway({
    policy:
      "version: 1\nrules: [{id: ask, match: {tool: create}, action: require_approval, reason: a person must look}]\n",
    keys: [{ name: "reader", role: "agent", max_permissions: ["fake.read"] }],
  });
});

const post = (headers: Record<string, string>, body: unknown, key = "agent") =>
  fetch(`${g.url}/mcp`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...headers,
    },
    body: JSON.stringify(body),
  });
const initialize = {
  jsonrpc: "2.0",
  id: 0,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "t", version: "1" } },
};

describe.each(["legacy", "modern"] as const)("Svc-Run-Id with a client of the %s era", (mode) => {
  it(`opens the run under that id, and continues it ${verifies("core.gateway.continue-header", "core.gateway.continue-creates")}`, async () => {
    const id = `named-${mode}`;
    const first = await g.connect("agent", { mode, headers: { "svc-run-id": id } });
    expect((await call(first, "echo"))._meta).toMatchObject({ "svc/run_id": id, "svc/step": 0 });
    await first.close();
    const second = await g.connect("agent", { mode, headers: { "svc-run-id": id } });
    expect((await call(second, "echo"))._meta).toMatchObject({ "svc/run_id": id, "svc/step": 1 });
  });

  it(`keeps the run's own mode and scope ${verifies("core.gateway.continue-keeps-mode")}`, async () => {
    const id = `narrow-${mode}`;
    const opened = await fetch(`${g.url}/v1/runs`, {
      method: "POST",
      headers: { authorization: "Bearer agent", "content-type": "application/json" },
      body: JSON.stringify({ run_id: id, mode: "observe", permissions: ["fake.read"] }),
    });
    expect(opened.status).toBe(201);
    const client = await g.connect("agent", { mode, headers: { "svc-run-id": id } });
    expect(await toolNames(client)).toContain("counted");
    expect((await call(client, "counted"))._meta).toMatchObject({
      "svc/decision": "would_block",
      "svc/run_id": id,
    });
    const run = await g.service.core.store.get("runs", id);
    expect(run).toMatchObject({ mode: "observe", scope: { permissions: ["fake.read"] } });
  });

  it(`belongs to one principal ${verifies("core.gateway.continue-owner-only", "contract.gateway.http-409")}`, async () => {
    const id = `mine-${mode}`;
    await g.connect("agent", { mode, headers: { "svc-run-id": id } }).then((client) => call(client, "echo"));
    const answer = await post({ "svc-run-id": id }, initialize, "agent2");
    expect(answer.status).toBe(409);
    expect(await answer.json()).toEqual({ error: `run ${id} belongs to another principal` });
    // What the newer negotiation makes of the 409 is the SDK's business; that nothing opens is ours.
    await expect(g.connect("agent2", { mode, headers: { "svc-run-id": id } })).rejects.toThrow(
      mode === "legacy" ? /belongs to another principal/ : /./,
    );
  });
});

it("an id whose run retention deleted does not come back as another run", async () => {
  const { service, running } = g;
  await call(await g.connect("agent", { headers: { "svc-run-id": "old" } }), "echo");
  await service.core.store.transact({ run: (tx) => tx.delete("runs", "old") });
  await running.gateway.runs.forget({ id: "key:agent" } as CallerPrincipal, "old");
  const answer = await post({ "svc-run-id": "old" }, initialize);
  expect([answer.status, await answer.json()]).toEqual([
    409,
    { error: "run old already exists on the ledger" },
  ]);
});

describe("a bad id", () => {
  it.each(["a b", "-a", ".a", "a/b", "x".repeat(129), "a%2f"])(
    `%j is a 400 ${verifies("core.gateway.continue-bad-id", "contract.gateway.http-400")}`,
    async (id) => {
      const answer = await post({ "svc-run-id": id }, initialize);
      expect(answer.status).toBe(400);
      expect(await answer.json()).toEqual({ error: expect.stringContaining("Svc-Run-Id") });
    },
  );
});

describe("without Svc-Run-Id", () => {
  it("each session has its own run, from its first call on", async () => {
    const before = await g.service.core.store.count("runs");
    const [a, b] = [await g.connect("agent"), await g.connect("agent")];
    await toolNames(a);
    expect(await g.service.core.store.count("runs")).toBe(before);
    const ids = [await call(a, "echo"), await call(a, "echo"), await call(b, "echo")].map(
      (one) => one._meta["svc/run_id"],
    );
    expect(ids[0]).toBe(ids[1]);
    expect(ids[2]).not.toBe(ids[0]);
    expect(await g.service.core.store.count("runs")).toBe(before + 2);
  });

  it(`a client without a session has one run over its calls, which are counted together ${verifies("beyond.runs.principal")}`, async () => {
    const other = await testGateway({
      policy:
        "version: 1\nlimits: [{id: few, match: {tool: echo}, max: 3, per: run, window: 1h, action: deny}]\n",
    });
    const [a, b, c] = [
      await other.connect("agent", { mode: "modern" }),
      await other.connect("agent", { mode: "modern" }),
      await other.connect("agent2", { mode: "modern" }),
    ];
    const results = await Promise.all([call(a, "echo"), call(b, "echo"), call(a, "echo"), call(c, "echo")]);
    const ids = results.map(({ _meta }) => _meta["svc/run_id"]);
    expect(new Set(ids.slice(0, 3)).size).toBe(1);
    expect(ids[3]).not.toBe(ids[0]);
    expect(results.every(({ isError }) => isError !== true)).toBe(true);
    expect((await call(b, "echo")).isError).toBe(true);
    // A client that names its run is counted in it alone.
    const named = await other.connect("agent", { mode: "modern", headers: { "svc-run-id": "apart" } });
    expect((await call(named, "echo"))._meta).toMatchObject({ "svc/run_id": "apart", "svc/step": 0 });
  });

  it("the id in the answer is what continues it", async () => {
    const client = await g.connect("agent", { mode: "modern" });
    const { "svc/run_id": id, "svc/step": step } = (await call(client, "echo"))._meta;
    const again = await g.connect("agent", { mode: "modern", headers: { "svc-run-id": id } });
    expect((await call(again, "echo"))._meta).toMatchObject({ "svc/run_id": id, "svc/step": step + 1 });
  });

  it("the scope is what the manifests declare and the key allows", async () => {
    const client = await g.connect("reader");
    expect(await toolNames(client)).toEqual(["echo", "get"]);
    expect((await call(client, "counted")).structuredContent.reasons).toEqual([
      "permission fake.write is not in the run's scope",
    ]);
  });
});

describe.each(["legacy", "modern"] as const)("an approval for a client of the %s era", (mode) => {
  it("is awaited, given, used once", async () => {
    const client = await g.connect("agent", { mode });
    const blocked = await call(client, "create", { mode });
    const { approval_id } = blocked.structuredContent;
    expect(approval_id).toMatch(/^apr_/);
    const same = await call(client, "create", { mode });
    expect(same.structuredContent.approval_id).toBe(approval_id);
    expect(same._meta["svc/run_id"]).toBe(blocked._meta["svc/run_id"]);
    const waiting = call(client, "svc.await_approval", { approval_id, seconds: 20 });
    const approver = await g.connect("approver", { path: "/operator/mcp", mode });
    const decided = await call(approver, "svc.approve_action", { approval_id, note: "fine" });
    expect(decided.structuredContent).toMatchObject({
      status: "approved",
      decided_by: "approver",
      note: "fine",
    });
    expect((await waiting).structuredContent).toMatchObject({
      id: approval_id,
      status: "approved",
      next: expect.stringContaining("same call again"),
    });
    const done = await call(client, "create", { mode });
    expect(done).toMatchObject({
      structuredContent: { id: expect.any(Number) },
      _meta: { "svc/decision": "allow", "svc/run_id": blocked._meta["svc/run_id"] },
    });
    const again = await call(client, "create", { mode });
    expect(again.structuredContent.approval_id).toMatch(/^apr_/);
    expect(again.structuredContent.approval_id).not.toBe(approval_id);
  });
});

describe("svc.await_approval", () => {
  it("answers at the end of its time, and hides other principals' requests", async () => {
    const client = await g.connect("agent");
    const { approval_id } = (await call(client, "create", { wait: 1 })).structuredContent;
    const still = await call(client, "svc.await_approval", { approval_id, seconds: 0 });
    expect(still.structuredContent).toMatchObject({ status: "pending" });
    expect(JSON.stringify(still)).not.toContain('"wait":1');
    const other = await g.connect("agent2");
    const hidden = await call(other, "svc.await_approval", { approval_id, seconds: 0 });
    expect(hidden).toMatchObject({
      isError: true,
      structuredContent: { error: expect.stringContaining("unknown approval request") },
    });
    expect(await call(client, "svc.await_approval", {})).toMatchObject({ isError: true });
    await until(async () => (await g.service.core.store.count("approvals")) > 0, "requests");
  });
});

describe("svc.plan_rollback on the agent endpoint", () => {
  it(`shows the session's run, and only its own runs ${verifies("core.gateway.agent-plan-rollback", "core.rollback.plan-gateway-dry")}`, async () => {
    const client = await g.connect("agent");
    const fresh = await call(client, "svc.plan_rollback");
    expect(fresh.structuredContent).toEqual({
      run_id: expect.stringMatching(/^run_/),
      actions: [],
      fully_reversible: true,
    });
    const { _meta } = await call(client, "delete", { id: 4 });
    const plan = (await call(client, "svc.plan_rollback")).structuredContent;
    expect(plan).toMatchObject({
      run_id: _meta["svc/run_id"],
      actions: [{ step: 0, tool: "delete", kind: "skip" }],
    });
    const other = await g.connect("agent2");
    const hidden = await call(other, "svc.plan_rollback", { run_id: _meta["svc/run_id"] });
    expect(hidden).toMatchObject({
      isError: true,
      structuredContent: { error: `unknown run ${_meta["svc/run_id"]}` },
    });
    const sessionless = await g.connect("agent", { mode: "modern" });
    const { run_id } = (await call(sessionless, "svc.plan_rollback")).structuredContent;
    expect(run_id).not.toBe(_meta["svc/run_id"]);
    expect((await call(sessionless, "echo"))._meta["svc/run_id"]).toBe(run_id);
    expect(
      (await call(sessionless, "svc.plan_rollback", { run_id: _meta["svc/run_id"] })).structuredContent,
    ).toEqual(plan);
  });
});
