import { readdirSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { type TestServer, testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

let s: TestServer;
beforeAll(async () => {
  s = await testServer({
    config: "registry: {manifests: reg/manifests, policies: reg/policies}\n",
    keys: [{ name: "op2", role: "admin" }],
  });
});
const MANIFEST = { tool: "new.tool", effect: "read", permission: "new.read", version: "1.0" };

describe("the registry", () => {
  it("is not there without a folder", async () => {
    verifies(
      "core.route.registry-404",
      "core.error.message-registry",
      "ops.error.registry",
      "core.http.not-enabled-404",
      "core.error.404-feature",
      "contract.readings.role-before-feature",
    );
    const off = await testServer();
    expect(await off.call("operator", "GET", "/v1/registry")).toMatchObject({
      status: 404,
      body: { error: "no manifest registry folder is configured on this server" },
    });
    expect((await off.call("auditor", "GET", "/v1/registry")).status).toBe(403);
    for (const path of ["/v1/registry/manifests", "/v1/registry/policy"]) {
      expect((await off.call("operator", "POST", path, { yaml: "x" })).body).toEqual({
        error: "no manifest registry folder is configured on this server",
      });
    }
  });

  it("takes a manifest from draft to approved to deprecated", async () => {
    verifies(
      "core.route.registry-get",
      "core.route.registry-draft",
      "core.route.registry-approve",
      "core.route.registry-deprecate",
      "contract.event.manifests",
      "contract.http.registry-manifests",
      "core.purpose.admin-publishes",
    );
    await s.call("agent", "POST", "/v1/runs", { run_id: "r", permissions: ["new.read"] });
    const ask = async () =>
      (await s.call("agent", "POST", "/v1/runs/r/intents", { tool: "new.tool", args: {}, reason: "r" })).body
        .decision;
    const made = await s.call("operator", "POST", "/v1/registry/manifests", {
      manifest: { ...MANIFEST, lifecycle: "approved" },
    });
    expect(made).toMatchObject({
      status: 201,
      body: {
        tool: "new.tool",
        version: "1.0",
        lifecycle: "draft",
        created_by: "operator",
        approved_by: null,
      },
    });
    expect(await ask()).toBe("block");
    expect((await s.call("operator", "POST", "/v1/registry/manifests", { manifest: MANIFEST })).status).toBe(
      409,
    );
    expect((await s.call("operator", "POST", "/v1/registry/manifests/new.tool/approve")).status).toBe(403);
    const approved = await s.call("admin", "POST", "/v1/registry/manifests/new.tool/approve");
    expect(approved).toMatchObject({ status: 200, body: { lifecycle: "approved", approved_by: "admin" } });
    expect(await ask()).toBe("allow");
    expect((await s.call("admin", "POST", "/v1/registry/manifests/new.tool/approve")).status).toBe(409);
    expect((await s.call("admin", "POST", "/v1/registry/manifests/new.tool/deprecate")).body.lifecycle).toBe(
      "deprecated",
    );
    expect(await ask()).toBe("allow");
    expect((await s.call("admin", "POST", "/v1/registry/manifests/none/approve")).status).toBe(404);
    expect((await s.call("operator", "GET", "/v1/registry")).body.manifests).toHaveLength(1);
    const events = (await s.call("auditor", "GET", "/v1/search/records?tool=new.tool")).body.records.map(
      (record: { event: string }) => record.event,
    );
    expect(events).toEqual([
      "intended",
      "manifest_deprecated",
      "intended",
      "manifest_approved",
      "blocked",
      "manifest_published",
    ]);
    expect(
      readdirSync(join(s.folder, "reg", "manifests")).filter((name) => name.endsWith(".yaml")),
    ).toHaveLength(1);
  });

  it("takes one entry as YAML with or without its dash", async () => {
    for (const [i, yaml] of [
      "- {tool: TOOL, effect: read, permission: p}",
      "tool: TOOL\neffect: read\npermission: p\n",
    ].entries()) {
      const tool = `dash.${i}`;
      const made = await s.call("operator", "POST", "/v1/registry/manifests", {
        yaml: yaml.replace("TOOL", tool),
      });
      expect(made).toMatchObject({ status: 201, body: { tool, lifecycle: "draft", created_by: "operator" } });
    }
  });

  it.each([
    [{ manifest: { tool: "x" } }, "effect"],
    [{ yaml: "- {tool: x, effect: odd, permission: p}" }, "effect"],
    [{ yaml: "[" }, "manifest"],
    [{ yaml: "{tool: x, effect: odd, permission: p}" }, "effect"],
    [{ yaml: "{a: ".repeat(50_000) }, "manifest"],
    [
      { yaml: "- {tool: a, effect: read, permission: p}\n- {tool: b, effect: read, permission: p}" },
      "one entry",
    ],
    [{}, "either"],
  ])("refuses %j", async (body, why) => {
    const answer = await s.call("operator", "POST", "/v1/registry/manifests", body);
    expect(answer.status).toBe(400);
    expect(answer.body.error).toContain(why);
  });

  it("puts a policy version in force at once", async () => {
    verifies(
      "core.route.registry-policy",
      "core.route.registry-activate",
      "contract.http.registry-policy",
      "contract.http.registry-policy-400",
      "contract.http.registry-policy-status",
      "core.error.400-policy",
      "core.version.policy-folder",
      "core.version.policy-activate",
    );
    const publish = (yaml: string, note?: string) =>
      s.call("operator", "POST", "/v1/registry/policy", { yaml, ...(note ? { note } : {}) });
    const deny =
      "version: 1\nrules:\n  - {id: no, match: {tool: crm.get}, action: deny, reason: closed}\ntests:\n  - {name: t, input: {tool: crm.get}, expect: deny}\n";
    expect(await publish(deny, "closing")).toMatchObject({
      status: 201,
      body: { version: "1", tests: { passed: 1, failed: 0 } },
    });
    expect((await publish("version: 2")).status).toBe(400);
    expect((await publish(deny.replace("expect: deny", "expect: allow"))).body.error).toContain(
      "expected allow, got deny",
    );
    await s.call("agent", "POST", "/v1/runs", { run_id: "p", permissions: ["crm.read"] });
    const ask = async () =>
      (await s.call("agent", "POST", "/v1/runs/p/intents", { tool: "crm.get", args: {}, reason: "r" })).body;
    expect((await ask()).decision).toBe("allow");
    expect((await s.call("operator", "POST", "/v1/registry/policy/1/activate")).status).toBe(403);
    expect((await s.call("admin", "POST", "/v1/registry/policy/1/activate")).body).toMatchObject({
      version: "1",
      status: "active",
      note: "closing",
    });
    expect(await ask()).toEqual({ decision: "block", reasons: ["closed"] });
    await publish("version: 1\n");
    await s.call("admin", "POST", "/v1/registry/policy/2/activate");
    expect((await ask()).decision).toBe("allow");
    const { policies } = (await s.call("operator", "GET", "/v1/registry")).body;
    expect(
      policies.map(({ version, status }: { version: string; status: string }) => [version, status]),
    ).toEqual([
      ["1", "retired"],
      ["2", "active"],
    ]);
    expect((await s.call("admin", "POST", "/v1/registry/policy/9/activate")).status).toBe(404);
  });
});
