/** The registry beyond its single routes: what it lists, who may not approve, and what a restart finds. */
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openApp } from "../../src/service/open-app.ts";
import { testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

const CONFIG = "registry: {manifests: reg/manifests, policies: reg/policies}\n";
const DENY = "version: 1\nrules: [{id: no, match: {tool: crm.get}, action: deny, reason: closed}]\n";

describe("the registry", () => {
  it("lists manifests and policies with who and when", async () => {
    verifies("contract.http.registry-get", "contract.http.registry-manifests");
    const s = await testServer({ config: CONFIG });
    const publish = (body: object) => s.call("operator", "POST", "/v1/registry/manifests", body);
    expect(
      (await publish({ manifest: { tool: "a.get", effect: "read", permission: "a", version: 2 } })).status,
    ).toBe(201);
    const yaml = "# kept\n- tool: b.get\n  effect: read\n  permission: b\n";
    expect(await publish({ yaml })).toMatchObject({
      status: 201,
      body: { tool: "b.get", version: "1", lifecycle: "draft" },
    });
    const reloads = () => s.logged.filter((line) => line.includes('"msg":"reloaded"')).length;
    const before = reloads();
    await s.call("admin", "POST", "/v1/registry/manifests/a.get/approve");
    expect(reloads()).toBe(before + 1);
    await s.call("operator", "POST", "/v1/registry/policy", { yaml: DENY, note: "closing time" });
    const { body } = await s.call("operator", "GET", "/v1/registry");
    expect(body).toEqual({
      manifests: [
        {
          tool: "a.get",
          version: "2",
          lifecycle: "approved",
          created_by: "operator",
          created_ms: s.env.now(),
          approved_by: "admin",
        },
        {
          tool: "b.get",
          version: "1",
          lifecycle: "draft",
          created_by: "operator",
          created_ms: s.env.now(),
          approved_by: null,
        },
      ],
      policies: [
        {
          version: "1",
          status: "draft",
          hash: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
          created_by: "operator",
          note: "closing time",
        },
      ],
    });
  });

  it("lets nobody approve their own draft under four_eyes", async () => {
    verifies("contract.approval.four-eyes-registry");
    const s = await testServer({
      config: CONFIG,
      policy: "version: 1\napprovals: {four_eyes: true}\n",
      keys: [{ name: "second", role: "admin" }],
    });
    const manifest = { tool: "own.get", effect: "read", permission: "own" };
    await s.call("admin", "POST", "/v1/registry/manifests", { manifest });
    const approve = (key: string) => s.call(key, "POST", "/v1/registry/manifests/own.get/approve");
    expect(await approve("admin")).toMatchObject({
      status: 403,
      body: { error: "you cannot decide your own request" },
    });
    expect((await approve("second")).status).toBe(200);
  });

  it("puts the activated policy before the configured one, now and after a restart", async () => {
    verifies("contract.readings.activated-policy", "contract.event.policy-activated");
    const s = await testServer({ config: CONFIG, policy: "version: 1\n" });
    await s.call("agent", "POST", "/v1/runs", { run_id: "r", permissions: ["crm.read"] });
    const ask = async () =>
      (await s.call("agent", "POST", "/v1/runs/r/intents", { tool: "crm.get", args: {}, reason: "r" })).body
        .decision;
    await s.call("operator", "POST", "/v1/registry/policy", { yaml: DENY });
    expect(await ask()).toBe("allow");
    await s.call("admin", "POST", "/v1/registry/policy/1/activate");
    expect(await ask()).toBe("block");
    const { records } = (await s.call("auditor", "GET", "/v1/search/records?event=policy_activated")).body;
    expect(records).toHaveLength(1);
    expect(records[0]).toMatchObject({ actor: "admin", detail: expect.stringContaining("1") });
    const settings = { ...s.app.settings, data: join(s.folder, "restarted") };
    expect(settings.policy).toBe(join(s.folder, "policy.yaml"));
    const again = await openApp(settings, s.env);
    expect(again.core.rules().policy.doc.rules?.[0]).toMatchObject({ id: "no" });
    await again.close();
  });
});
