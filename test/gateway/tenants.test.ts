/** Operator tools in the hands of somebody who is bound to a tenant. */
import { beforeAll, expect, it } from "vitest";
import { verifies } from "../support/verifies.ts";
import { call, type GatewayTest, testGateway } from "./support/gateway.ts";

let g: GatewayTest;
beforeAll(async () => {
  const bound = (tenant: string, role: string) => ({
    name: `${tenant}-${role}`,
    role,
    tenant,
    tenant_only: true,
  });
  g = await testGateway({
    config: { quotas: [{ match: { tenant: "globex", actor: "*-agent" }, sessions: 2 }] },
    keys: ["acme", "globex"].flatMap((tenant) => [bound(tenant, "agent"), bound(tenant, "admin")]),
  });
  for (const tenant of ["acme", "globex"]) {
    const agent = await g.connect(`${tenant}-agent`, { headers: { "svc-run-id": `${tenant}-run` } });
    await call(agent, "create", { id: tenant });
  }
});

it("acts within the tenant", async () => {
  verifies("beyond.tenants.operator-tools");
  const admin = await g.connect("acme-admin", { path: "/operator/mcp" });
  expect((await call(admin, "svc.list_runs")).structuredContent.runs).toMatchObject([{ run_id: "acme-run" }]);
  for (const [tool, args] of [
    ["svc.plan_rollback", { run_id: "globex-run" }],
    ["svc.execute_rollback", { run_id: "globex-run", confirm: true }],
  ] as const) {
    const { isError, content } = await call(admin, tool, args);
    expect([tool, isError, content[0].text]).toEqual([tool, true, "unknown run globex-run"]);
  }
  expect((await call(admin, "svc.execute_rollback", { run_id: "acme-run", confirm: true })).isError).not.toBe(
    true,
  );
  await call(admin, "svc.halt", { reason: "acme stops" });
  const { halts } = (await (
    await fetch(`${g.url}/v1/halts`, { headers: { authorization: "Bearer admin" } })
  ).json()) as {
    halts: { scope: { tenant: string } }[];
  };
  expect(halts.map(({ scope }) => scope.tenant)).toEqual(["acme"]);
});

it("opens no more sessions than the quota lets, and again once one has ended", async () => {
  verifies("beyond.quotas.sessions");
  const second = await g.connect("globex-agent");
  const body = {
    jsonrpc: "2.0",
    id: 1,
    method: "initialize",
    params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "t", version: "1" } },
  };
  const headers = {
    authorization: "Bearer globex-agent",
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
  };
  const open = () => fetch(`${g.url}/mcp`, { method: "POST", headers, body: JSON.stringify(body) });
  const refused = await open();
  expect([refused.status, refused.headers.get("retry-after"), await refused.json()]).toEqual([
    429,
    "1",
    { error: "over the quota of 2 open sessions; end one of them first" },
  ]);
  const id = (second.transport as unknown as { sessionId: string }).sessionId;
  await fetch(`${g.url}/mcp`, { method: "DELETE", headers: { ...headers, "mcp-session-id": id } });
  expect((await open()).status).toBe(200);
});
