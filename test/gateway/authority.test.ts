/** A session knows nobody: each request has the authority that its credential has at that moment. */
import { beforeEach, describe, expect, it } from "vitest";
import type { KeyFields } from "../../src/auth/key-manager.ts";
import { ask, call, type GatewayTest, testGateway, toolNames, until } from "./support/gateway.ts";

const POLICY = `
version: 1
rules: [{id: asks, match: {tool: slow}, action: require_approval, reason: a person must see it}]
`;
let g: GatewayTest;
beforeEach(async () => {
  g = await testGateway({
    policy: POLICY,
    keys: [
      { name: "chief", role: "admin" },
      { name: "bot", role: "agent" },
    ],
  });
});

async function change(name: string, fields: KeyFields): Promise<void> {
  const keys = g.service.keys!;
  const { index, fingerprint } = (await keys.list()).find((key) => key.name === name)!;
  await keys.patch(index, fields, fingerprint);
}
const told = async (result: Promise<{ isError?: boolean; content: { text: string }[] }>) => {
  const { isError, content } = await result;
  return isError ? content[0]!.text : "done";
};
const refused = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "accepted",
    (error: Error) => error.message,
  );

describe.each(["legacy", "modern"] as const)("an operator's session (%s)", (mode) => {
  const connect = (key: string) => g.connect(key, { path: "/operator/mcp", mode });

  it("loses what its key loses, gets what its key gets, and ends with it", async () => {
    const client = await connect("chief");
    const halt = () => told(call(client, "svc.halt", { reason: "x" }));
    const approve = () =>
      told(call(client, "svc.approve_action", { approval_id: "apr_00000000-0000-4000-8000-000000000000" }));
    expect(await halt()).toBe("done");
    expect(await told(call(client, "svc.resume"))).toBe("done");
    await change("chief", { roles: ["operator"] });
    expect(await halt()).toBe("admin only");
    expect(await told(call(client, "svc.resume"))).toBe("admin only");
    await change("chief", { roles: ["auditor"] });
    expect(await approve()).toBe("approver role required");
    expect(await told(call(client, "svc.execute_rollback", { run_id: "r", confirm: true }))).toBe(
      "operator role required",
    );
    expect(await told(call(client, "svc.list_runs"))).toBe("done");
    await change("chief", { roles: ["admin"] });
    expect(await halt()).toBe("done");
    await change("chief", { roles: ["agent"] });
    expect(await refused(call(client, "svc.list_runs"))).toMatch(/auditor role or higher required/);
    await change("chief", { roles: ["admin"], disabled: true });
    expect(await refused(call(client, "svc.list_runs"))).toMatch(/invalid credential/);
    expect((await g.events()).filter((event) => event === "halted")).toHaveLength(2);
  });
});

describe.each(["legacy", "modern"] as const)("an agent's session (%s)", (mode) => {
  const decision = async (client: Awaited<ReturnType<typeof g.connect>>, tool: string) => {
    const { _meta, content } = await call(client, tool);
    return _meta["svc/decision"] === "block" ? content[0].text : _meta["svc/decision"];
  };

  it("may do and sees what its key may now, in a run that was opened with more", async () => {
    const client = await g.connect("bot", { mode, headers: { "svc-run-id": "wide" } });
    expect(await decision(client, "create")).toBe("allow");
    expect(await toolNames(client)).toContain("create");
    await change("bot", { max_permissions: ["fake.read"] });
    expect(await decision(client, "create")).toContain(
      "permission fake.write exceeds the current max_permissions of this key",
    );
    expect(await toolNames(client)).toEqual(expect.not.arrayContaining(["create"]));
    expect(await decision(client, "echo")).toBe("allow");
    await change("bot", { max_permissions: ["fake.*"] });
    expect(await decision(client, "create")).toBe("allow");
    await change("bot", { roles: ["auditor"] });
    expect(await refused(call(client, "echo"))).toMatch(/agent role required/);
    await change("bot", { roles: ["agent"], expires_at: "2020-01-01" });
    expect(await refused(call(client, "echo"))).toMatch(/invalid credential/);
  });

  it("opens its run with what its key may at the first call", async () => {
    const client = await g.connect("bot", { mode });
    await change("bot", { max_permissions: ["fake.read"] });
    const { _meta } = await call(client, "echo");
    const run = await g.service.core.store.get("runs", _meta["svc/run_id"]);
    expect(run!.scope.permissions).toEqual(["fake.read"]);
    expect(await decision(client, "create")).toContain("permission fake.write");
  });
});

describe("a run in observe mode", () => {
  it("stops when its key may no longer observe", async () => {
    g = await testGateway({ mode: "observe", keys: [{ name: "bot", role: "agent" }] });
    const client = await g.connect("bot");
    expect((await call(client, "create"))._meta["svc/decision"]).toBe("allow");
    await change("bot", { allow_observe: false });
    const stopped = await call(client, "create");
    expect([stopped.isError, stopped.content[0].text]).toEqual([
      true,
      expect.stringContaining("mode observe needs a key with allow_observe"),
    ]);
  });
});

describe("later changes", () => {
  it("a decision does not reach a key that is gone", async () => {
    const agent = await g.connect("bot", { headers: { "svc-run-id": "waits" } });
    const approval_id = (await call(agent, "slow")).structuredContent.approval_id;
    // Whether it is waiting already or still on its way, the key is gone by the time of the answer.
    const waiting = told(call(agent, "svc.await_approval", { approval_id, seconds: 60 })).catch(
      (error: Error) => error.message,
    );
    await change("bot", { disabled: true });
    const approver = await g.connect("approver", { path: "/operator/mcp" });
    expect(await told(call(approver, "svc.approve_action", { approval_id }))).toBe("done");
    expect(await waiting).toContain("invalid credential");
  });

  it("a stream ends when its key may no longer open it, in a session and without one", async () => {
    const headers = {
      authorization: "Bearer bot",
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
    };
    const post = (body: object, more: Record<string, string> = {}) =>
      fetch(`${g.url}/mcp`, { method: "POST", headers: { ...headers, ...more }, body: JSON.stringify(body) });
    const clientInfo = { name: "t", version: "1" };
    const opened = await post({
      ...{ jsonrpc: "2.0", id: 0, method: "initialize" },
      params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo },
    });
    const session = opened.headers.get("mcp-session-id")!;
    const older = await fetch(`${g.url}/mcp`, { headers: { ...headers, "mcp-session-id": session } });
    const meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": clientInfo,
      "io.modelcontextprotocol/clientCapabilities": {},
    };
    const newer = await post(
      {
        ...{ jsonrpc: "2.0", id: 1, method: "subscriptions/listen" },
        params: { notifications: { toolsListChanged: true }, _meta: meta },
      },
      { "mcp-protocol-version": "2026-07-28", "mcp-method": "subscriptions/listen" },
    );
    expect([older.status, newer.status]).toEqual([200, 200]);
    let open = 2;
    for (const stream of [older, newer]) {
      const closed = () => void open--;
      stream.text().then(closed, closed);
    }
    await change("bot", { roles: ["auditor"] });
    await until(() => open === 0, "both streams are closed");
  });

  it("a rollback stops before the next step when its operator no longer is one", async () => {
    const agent = await g.connect("bot", { headers: { "svc-run-id": "long" } });
    for (let i = 0; i < 2; i++) await call(agent, "create", { n: i });
    const chief = await g.connect("chief", { path: "/operator/mcp" });
    const { compensator } = g.service.jobTools!;
    const undo: typeof compensator = async (...task) => {
      const done = await compensator(...task);
      await change("chief", { roles: ["auditor"] });
      return done;
    };
    Object.assign(g.running.gateway.services.undo, { compensator: undo });
    const said = await told(call(chief, "svc.execute_rollback", { run_id: "long", confirm: true }));
    expect(said).toMatch(/^chief can no longer roll back; the remaining steps are not undone/);
    const plan = await ask(await g.connect("auditor", { path: "/operator/mcp" }), "tools/call", {
      name: "svc.plan_rollback",
      arguments: { run_id: "long" },
    });
    expect(plan.structuredContent.actions).toMatchObject([{ step: 0, kind: "compensate" }]);
  });
});
