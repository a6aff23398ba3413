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
