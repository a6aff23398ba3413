/** Operator tools in the hands of somebody who is bound to a tenant. */
import { beforeAll, expect, it } from "vitest";
import { AGENT_TOOLS } from "../../src/gateway/tools/agent-tools.ts";
import { OPERATOR_TOOLS } from "../../src/gateway/tools/operator-tools.ts";
import type { OwnTool } from "../../src/gateway/tools/own-tool.ts";
import { systemEnv } from "../../src/kernel/env.ts";
import {
  difference,
  life,
  NEIGHBOUR,
  neverThere,
  TENANT_KEYS,
  TENANT_MANIFESTS,
  TENANT_POLICY,
  type Things,
} from "../support/tenant-life.ts";
import { verifies } from "../support/verifies.ts";
import { call, FAKE_MANIFESTS, type GatewayTest, testGateway } from "./support/gateway.ts";

let g: GatewayTest;
let ours: Things;
let theirs: Things;
beforeAll(async () => {
  g = await testGateway({
    manifests: `${FAKE_MANIFESTS}${TENANT_MANIFESTS}`,
    policy: TENANT_POLICY,
    config: {
      quotas: [{ match: { tenant: "globex", actor: "*-agent" }, sessions: 2 }],
      capture: { enabled: true },
    },
    keys: TENANT_KEYS,
  });
  const api = async (key: string, method: string, path: string, body?: object) => {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const answer = await fetch(`${g.url}${path}`, { method, headers, ...sent });
    return { status: answer.status, body: await answer.json().catch(() => null) };
  };
  const now = systemEnv.now();
  const use = async (tenant: string) => {
    const things = await life(api, now, tenant);
    const agent = await g.connect(`${tenant}-agent`, { headers: { "svc-run-id": `${tenant}-mcp` } });
    await call(agent, "create", { id: tenant });
    return things;
  };
  ours = await use("acme");
  theirs = await use(NEIGHBOUR);
});

/** What an own tool can be asked, with the names of these things. */
function asked({ input }: OwnTool, things: Things, tenant: string): Record<string, unknown>[] {
  const { runs, approvals, plans, contain } = things;
  const values: Record<string, unknown> = {
    ...{
      run_id: runs,
      approval_id: approvals,
      plan_id: plans,
      contain_id: contain,
      actor: `${tenant}-agent`,
    },
    ...{ reason: "for a reason that is long enough", note: "a note", seconds: 0, tool: "mail.send" },
    ...{ confirm: true, dry_run: true, calls: [{ tool: "mail.send", arguments: {} }], offer: { args: {} } },
  };
  const shape = Object.keys((input as unknown as { shape: object }).shape);
  const some = (fields: string[]) => Object.fromEntries(fields.map((field) => [field, values[field]]));
  const known = shape.filter((field) => field in values);
  return [{}, some(known), ...known.map((field) => some([field]))];
}

it("answers for another tenant's object as for one that never existed, with every one of its tools", async () => {
  verifies("beyond.tenants.operator-tools");
  const never = neverThere(theirs);
  const parted: unknown[] = [];
  for (const [path, tools, roles] of [
    ["/operator/mcp", OPERATOR_TOOLS, ["auditor", "approver", "operator", "admin"]],
    ["/mcp", AGENT_TOOLS, ["agent"]],
  ] as const) {
    for (const role of roles) {
      const client = await g.connect(`acme-${role}`, { path });
      for (const tool of tools) {
        // Halts and resumes name nothing; who is contained within the tenant is tried over HTTP.
        if (["svc.halt", "svc.resume"].includes(tool.name)) continue;
        for (const at of asked(tool, theirs, NEIGHBOUR).keys()) {
          const ask = async (things: Things, tenant: string) => {
            const args = asked(tool, things, tenant)[at]!;
            let text = JSON.stringify(await call(client, tool.name, args).catch(String));
            for (const [kind, id] of Object.entries(things)) text = text.replaceAll(id, `<${kind}>`);
            expect(text.replaceAll(`${tenant}-agent`, ""), `${role} ${tool.name}`).not.toContain(NEIGHBOUR);
            return text
              .replaceAll(tenant, "<tenant>")
              .replace(/[a-z]+_[0-9a-f]{8}-[-0-9a-f]{27}|(?<=_ms\W+)\d+/g, "<made>");
          };
          const [real, none] = [await ask(theirs, NEIGHBOUR), await ask(never, "nosuch")];
          if (real !== none) parted.push([role, tool.name, at, ...difference(real, none)]);
        }
      }
    }
  }
  expect(parted).toEqual([]);
});

it("sees its own runs and requests alone", async () => {
  verifies("beyond.tenants.operator-tools");
  const admin = await g.connect("acme-admin", { path: "/operator/mcp" });
  const tenants = (of: { tenant: string }[]) => [...new Set(of.map(({ tenant }) => tenant))];
  expect(tenants((await call(admin, "svc.list_runs")).structuredContent.runs)).toEqual(["acme"]);
  const { approvals } = (await call(admin, "svc.list_approvals")).structuredContent;
  expect(approvals.map(({ id }: { id: string }) => id)).toContain(ours.approvals);
  expect(tenants(approvals)).toEqual(["acme"]);
});

it("acts within the tenant", async () => {
  verifies("beyond.tenants.operator-tools");
  const admin = await g.connect("acme-admin", { path: "/operator/mcp" });
  for (const [tool, args] of [
    ["svc.plan_rollback", { run_id: "globex-mcp" }],
    ["svc.execute_rollback", { run_id: "globex-mcp", confirm: true }],
  ] as const) {
    const { isError, content } = await call(admin, tool, args);
    expect([tool, isError, content[0].text]).toEqual([tool, true, "unknown run globex-mcp"]);
  }
  expect((await call(admin, "svc.execute_rollback", { run_id: "acme-mcp", confirm: true })).isError).not.toBe(
    true,
  );
  await call(admin, "svc.halt", { reason: "acme stops" });
  const { halts } = (await (
    await fetch(`${g.url}/v1/halts`, { headers: { authorization: "Bearer admin" } })
  ).json()) as {
    halts: { scope: { tenant: string } }[];
  };
  expect(halts.map(({ scope }) => scope.tenant)).toContain("acme");
  expect(new Set(halts.map(({ scope }) => scope.tenant))).toEqual(new Set(["acme", NEIGHBOUR]));
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
