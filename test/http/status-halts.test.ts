/** The status, and the kill switch: its scopes, its records, and that nothing new runs while it is pulled. */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import canonicalize from "canonicalize";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { sha256Hex } from "../../src/kernel/hash.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

const POLICY =
  "version: 1\nrules:\n  - {id: ask, match: {tool: mail.send}, action: require_approval, reason: ask}\n";
let s: TestServer;
beforeAll(async () => {
  s = await testServer({
    policy: POLICY,
    config: "environment: prod\nkill_file: kill\n",
    keys: [
      { name: "acme-bot", role: "agent", tenant: "acme" },
      { name: "lone-bot", role: "agent" },
    ],
  });
  for (const key of ["agent", "acme-bot", "lone-bot"]) {
    await s.call(key, "POST", "/v1/runs", {
      run_id: key,
      permissions: ["crm.read", "crm.write", "mail.send"],
    });
  }
});
beforeEach(async () => {
  await s.call("admin", "POST", "/v1/resume", {});
});
const halt = (body: Record<string, unknown>, key = "admin") => s.call(key, "POST", "/v1/halt", body);
const halts = async () => (await s.call("auditor", "GET", "/v1/halts")).body.halts;
const ask = async (key = "agent", tool = "crm.get", run = key) =>
  (await s.call(key, "POST", `/v1/runs/${run}/intents`, { tool, args: {}, reason: "r" })).body;

describe("GET /v1/status", () => {
  it("answers with everything at a glance", async () => {
    verifies(
      "contract.http.status",
      "core.route.status",
      "contract.http.status-policy",
      "contract.hash.form",
    );
    expect((await s.call("agent", "GET", "/v1/status")).status).toBe(403);
    await s.env.advance(5_000);
    await ask("agent", "mail.send");
    const { hash, records } = await s.app.core.store.head();
    const { status, body } = await s.call("auditor", "GET", "/v1/status");
    expect(status).toBe(200);
    const doc = {
      version: 1,
      rules: [{ id: "ask", match: { tool: "mail.send" }, action: "require_approval", reason: "ask" }],
    };
    expect(body).toEqual({
      version: s.app.version,
      store: "memory",
      environment: "prod",
      uptime_ms: expect.any(Number),
      records,
      head: hash,
      runs: 3,
      approvals: { pending: 1, escalated: 0, approved: 0, denied: 0, expired: 0, consumed: 0 },
      halted: false,
      halts: [],
      manifests: 3,
      policy: { version: 1, hash: `sha256:${sha256Hex(canonicalize(doc)!)}`, rules: 1 },
      capture: false,
      signing: false,
      egress: false,
    });
    expect(body.uptime_ms).toBeGreaterThanOrEqual(5_000);
  });

  it("says that the service is halted, by a person or by the file", async () => {
    const halted = async () => (await s.call("auditor", "GET", "/v1/status")).body;
    await halt({ reason: "drill", tool: "none.*" });
    expect(await halted()).toMatchObject({ halted: true, halts: [{ reason: "drill" }] });
    await s.call("admin", "POST", "/v1/resume", {});
    writeFileSync(join(s.folder, "kill"), "");
    expect(await halted()).toMatchObject({ halted: true, halts: [] });
    rmSync(join(s.folder, "kill"));
    expect(await halted()).toMatchObject({ halted: false });
  });
});

describe("a halt", () => {
  it("is set by an admin with a reason, listed, and lifted", async () => {
    verifies(
      "core.route.halt",
      "core.route.halts",
      "core.route.resume",
      "core.purpose.admin-halts",
      "core.auth.operator-halt-403",
      "contract.http.halt-post",
      "contract.http.halts-get",
      "contract.http.resume-answer",
      "contract.halt.fields",
      "core.halt.id-form",
      "core.halt.reason",
      "core.halt.by",
      "core.halt-state.by-route",
      "core.halt-state.resume-route",
      "core.halt-state.reason-text",
      "core.halt.no-scope-halts-all",
      "core.purpose.decides-by-halts",
      "contract.event.halted",
    );
    for (const key of ["operator", "approver", "auditor", "agent"]) {
      expect((await halt({ reason: "r" }, key)).status).toBe(403);
      expect((await s.call(key, "POST", "/v1/resume", {})).status).toBe(403);
    }
    for (const bad of [
      {},
      { reason: "" },
      { reason: " \n" },
      { reason: 7 },
      { reason: "r", scope: {} },
      { reason: "r", tool: "" },
      { reason: "r", tool: "{a" },
    ]) {
      expect((await halt(bad)).status).toBe(400);
    }
    expect(await halts()).toEqual([]);
    const set = await halt({ reason: "smoke in the server room" });
    expect(set.status).toBe(201);
    expect(set.body).toEqual({
      id: expect.stringMatching(/^halt_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/),
      reason: "smoke in the server room",
      scope: { tool: null, actor: null, tenant: null, environment: null },
      by: "admin",
      created_ms: s.env.now(),
    });
    expect(await halts()).toEqual([set.body]);
    for (const key of ["agent", "acme-bot"]) {
      expect(await ask(key)).toEqual({
        decision: "block",
        reasons: ["kill switch: smoke in the server room"],
      });
    }
    const lifted = await s.call("admin", "POST", "/v1/resume", {});
    expect(lifted).toMatchObject({ status: 200, body: { lifted: [set.body.id] } });
    expect(await ask()).toMatchObject({ decision: "allow" });
    const { records } = (await s.call("auditor", "GET", "/v1/search/records?limit=4")).body;
    expect(records.map(({ event, actor, detail }: Record<string, string>) => [event, actor, detail])).toEqual(
      [
        ["intended", "agent", undefined],
        ["resumed", "admin", `${set.body.id}: everything`],
        ["blocked", "acme-bot", "kill switch: smoke in the server room"],
        ["blocked", "agent", "kill switch: smoke in the server room"],
      ],
    );
  });

  it("is lifted one by one, or all at once", async () => {
    verifies("contract.http.resume-one", "contract.http.resume-all");
    const ids: string[] = [];
    for (const reason of ["a", "b", "c"]) ids.push((await halt({ reason })).body.id);
    const lift = (body: object) => s.call("admin", "POST", "/v1/resume", body);
    expect((await lift({ id: ids[1] })).body).toEqual({ lifted: [ids[1]] });
    expect((await lift({ id: ids[1] })).status).toBe(404);
    expect((await ask()).reasons).toEqual(["kill switch: a", "kill switch: c"]);
    expect((await lift({})).body).toEqual({ lifted: [ids[0], ids[2]] });
    expect((await lift({})).body).toEqual({ lifted: [] });
  });

  it.each([
    ["tool", { tool: "crm.*" }, { agent: "block", "acme-bot": "block" }, "allow"],
    ["tool in braces", { tool: "{crm,mail}.?et" }, { agent: "block" }, "allow"],
    ["actor", { actor: "acme-*" }, { agent: "allow", "acme-bot": "block", "lone-bot": "allow" }, null],
    ["tenant", { tenant: "ac?e" }, { agent: "allow", "acme-bot": "block" }, null],
    ["any tenant, or none", { tenant: "*" }, { agent: "block", "acme-bot": "block" }, null],
    ["environment", { environment: "pr*" }, { agent: "block", "acme-bot": "block" }, null],
    ["another environment", { environment: "staging" }, { agent: "allow" }, null],
    [
      "every field",
      { tool: "crm.*", actor: "*-bot", tenant: "acme", environment: "prod" },
      { agent: "allow", "acme-bot": "block", "lone-bot": "allow" },
      null,
    ],
  ] as const)("may be limited by %s", async (_name, scope, wanted, otherTool) => {
    verifies(
      "core.route.halt-scope",
      "core.halt.scope-tool",
      "core.halt.scope-actor",
      "core.halt.scope-tenant",
      "core.halt.scope-environment",
      "core.halt.every-field-must-match",
    );
    const { body } = await halt({ reason: "scoped", ...scope });
    expect(body.scope).toEqual({ tool: null, actor: null, tenant: null, environment: null, ...scope });
    for (const [key, decision] of Object.entries(wanted)) {
      expect([key, (await ask(key)).decision]).toEqual([key, decision]);
    }
    if (otherTool !== null)
      expect((await ask("agent", "crm.create")).decision).toBe(scope.tool === "crm.*" ? "block" : otherTool);
  });

  it("blocks in every mode", async () => {
    verifies("contract.readings.halt-every-mode");
    await halt({ reason: "all" });
    for (const mode of ["enforce", "observe", "advise"]) {
      await s.call("agent", "POST", "/v1/runs", { run_id: `halt-${mode}`, permissions: ["crm.read"], mode });
      expect(await ask("agent", "crm.get", `halt-${mode}`)).toEqual({
        decision: "block",
        reasons: ["kill switch: all"],
      });
    }
  });

  it("may be a file, for as long as it is there", async () => {
    verifies("core.halt-state.by-file", "core.halt-state.file-removed");
    const file = join(s.folder, "kill");
    writeFileSync(file, "");
    expect(await ask()).toEqual({ decision: "block", reasons: ["kill switch: the kill-switch file exists"] });
    writeFileSync(file, "disk swap\n");
    expect(await ask()).toEqual({ decision: "block", reasons: ["kill switch: disk swap"] });
    rmSync(file);
    expect(await ask()).toMatchObject({ decision: "allow" });
  });
});
