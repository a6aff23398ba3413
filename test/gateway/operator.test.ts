/** The operator endpoint: every tool, its role, and rollback through the upstream. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { newKeyPair } from "../../src/evidence/signing.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";
import { ask, call, FAKE_MANIFESTS, fakeUpstream, type GatewayTest, testGateway } from "./support/gateway.ts";

const log = join(tempDir("operator"), "messages.jsonl");
let g: GatewayTest;
beforeAll(async () => {
  g = await testGateway({ upstreams: [fakeUpstream({ env: { FAKE_LOG: log } })] });
});

const operator = (key: string, mode: "legacy" | "modern" = "legacy") =>
  g.connect(key, { path: "/operator/mcp", mode });
const upstreamCalls = () =>
  readFileSync(log, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))
    .filter(({ method }) => method === "tools/call")
    .map(({ params }) => params);

const TOOLS = [
  "svc.list_runs",
  "svc.list_approvals",
  "svc.approve_action",
  "svc.deny_action",
  "svc.plan_rollback",
  "svc.execute_rollback",
  "svc.export_evidence",
  "svc.preview_impact",
  "svc.halt",
  "svc.resume",
  "svc.contain",
];

describe("the endpoint", () => {
  it(`offers the operator tools ${verifies("contract.gateway.tool-list-runs", "contract.gateway.tool-list-approvals", "contract.gateway.tool-approve", "contract.gateway.tool-plan", "contract.gateway.tool-rollback", "contract.gateway.tool-export", "contract.gateway.tool-halt", "core.gateway.tool-approve-action", "core.gateway.tool-deny-action", "core.purpose.surface-gateway")}`, async () => {
    const { tools } = await ask(await operator("auditor"), "tools/list");
    const byName = new Map<string, { inputSchema: { properties: object; required?: string[] } }>(
      tools.map((tool: { name: string }) => [tool.name, tool]),
    );
    for (const name of TOOLS) expect(byName.has(name), name).toBe(true);
    const inputs = (name: string) => Object.keys(byName.get(name)!.inputSchema.properties).sort();
    expect(inputs("svc.approve_action")).toEqual(["approval_id", "card_hash", "note"]);
    expect(inputs("svc.deny_action")).toEqual(["approval_id", "card_hash", "note", "offer"]);
    expect(inputs("svc.execute_rollback")).toEqual([
      "approve_compensations",
      "children",
      "confirm",
      "current_hash",
      "overwrite",
      "reason",
      "run_id",
      "to",
      "with",
    ]);
    expect(inputs("svc.plan_rollback")).toEqual(["children", "dependents", "run_id"]);
    expect(inputs("svc.export_evidence")).toEqual(["run_id"]);
    expect(inputs("svc.halt")).toEqual(["reason"]);
    expect(inputs("svc.resume")).toEqual([]);
    await expect(ask(await operator("auditor"), "resources/list")).rejects.toMatchObject({ code: -32601 });
    await expect(call(await operator("auditor"), "echo")).rejects.toMatchObject({ code: -32602 });
  });

  it(`checks the role of every tool ${verifies("core.gateway.tool-halt-admin", "core.gateway.tool-resume-admin")}`, async () => {
    const approval_id = "apr_00000000-0000-4000-8000-000000000000";
    const needs: [string, Record<string, unknown>, string, string[]][] = [
      ["svc.approve_action", { approval_id }, "approver role required", ["auditor"]],
      ["svc.deny_action", { approval_id }, "approver role required", ["auditor"]],
      [
        "svc.execute_rollback",
        { run_id: "x", confirm: true },
        "operator role required",
        ["auditor", "approver"],
      ],
      ["svc.halt", { reason: "x" }, "admin only", ["auditor", "approver", "operator"]],
      ["svc.resume", {}, "admin only", ["auditor", "approver", "operator"]],
      ["svc.contain", { actor: "x", reason: "x" }, "admin only", ["auditor", "approver", "operator"]],
    ];
    for (const [tool, args, message, keys] of needs) {
      for (const key of keys) {
        const result = await call(await operator(key), tool, args);
        expect([tool, key, result.isError, result.content[0].text]).toEqual([tool, key, true, message]);
      }
    }
    expect(await g.events()).not.toContain("halted");
  });

  it(`takes an auditor or higher ${verifies("core.gateway.operator-auditor", "core.gateway.operator-refusal")}`, async () => {
    await expect(operator("agent")).rejects.toThrow(/auditor role or higher required/);
    for (const key of ["auditor", "approver", "operator", "admin"]) {
      for (const mode of ["legacy", "modern"] as const)
        expect((await operator(key, mode)).getServerVersion()?.name).toBe("svc-gateway");
    }
  });

  it("lists runs and requests without values", async () => {
    const agent = await g.connect("agent", { headers: { "svc-run-id": "listed" } });
    await call(agent, "echo", { text: "canary-value" });
    const auditor = await operator("auditor");
    const { runs } = (await call(auditor, "svc.list_runs", { limit: 5 })).structuredContent;
    expect(runs).toContainEqual(
      expect.objectContaining({ run_id: "listed", actor: "agent", steps: 1, attention: false }),
    );
    expect((await call(auditor, "svc.list_runs", { limit: 0 })).isError).toBe(true);
    expect((await call(auditor, "svc.list_approvals", { status: "pending" })).structuredContent).toEqual({
      approvals: [],
    });
    expect(JSON.stringify(runs)).not.toContain("canary-value");
  });
});

describe("svc.execute_rollback", () => {
  it(`without confirm is a dry run ${verifies("core.gateway.execute-rollback-dry", "core.gateway.tool-execute-rollback")}`, async () => {
    const agent = await g.connect("agent", { headers: { "svc-run-id": "dry" } });
    await call(agent, "create", { n: 1 });
    const result = (await call(await operator("operator"), "svc.execute_rollback", { run_id: "dry" }))
      .structuredContent;
    expect(result).toMatchObject({
      dry_run: true,
      plan: { run_id: "dry", fully_reversible: true, actions: [{ kind: "compensate" }] },
    });
    expect(await g.events("dry")).toEqual(["intended", "succeeded"]);
    const unknown = await call(await operator("operator"), "svc.execute_rollback", {
      run_id: "nowhere",
      confirm: true,
    });
    expect(unknown).toMatchObject({ isError: true, content: [{ text: "unknown run nowhere" }] });
  });

  it("undoes steps of other runs with it, and lists the calls that depend on the run", async () => {
    verifies("beyond.cascade.mcp");
    const first = await g.connect("agent", { headers: { "svc-run-id": "with-one" } });
    await call(first, "create", { n: 1 });
    const second = await g.connect("agent", { headers: { "svc-run-id": "with-two" } });
    await call(second, "create", { n: 2 });
    await call(second, "create", { n: 3 });
    const desk = await operator("operator");
    const plan = await call(desk, "svc.plan_rollback", { run_id: "with-one", dependents: true });
    expect(plan.structuredContent).toMatchObject({ run_id: "with-one", dependents: [] });
    const chosen = { run_id: "with-one", with: [{ run_id: "with-two", step: 0 }] };
    const dry = await call(desk, "svc.execute_rollback", chosen);
    expect(dry.structuredContent).toMatchObject({ dry_run: true, plan: { dependents: [] } });
    const done = await call(desk, "svc.execute_rollback", { ...chosen, confirm: true });
    expect(done.structuredContent).toMatchObject({
      compensated: [0],
      with: [{ run_id: "with-two", compensated: [0], complete: true }],
      complete: true,
    });
    expect(await g.events("with-two")).not.toHaveLength(0);
    const missing = { run_id: "with-one", with: [{ run_id: "nowhere", step: 0 }], confirm: true };
    expect(await call(desk, "svc.execute_rollback", missing)).toMatchObject({ isError: true });
  });

  it(`undoes through the upstream, reads back, and sends the key along ${verifies("core.rollback.gateway-calls-tool", "core.rollback.gateway-key-in-metadata", "core.rollback.gateway-readback", "core.report.gateway-gives-it")}`, async () => {
    const agent = await g.connect("agent", { headers: { "svc-run-id": "undone" } });
    const first = (await call(agent, "create", { n: 1 })).structuredContent.id;
    const second = (await call(agent, "create", { n: 2 })).structuredContent.id;
    const before = upstreamCalls().length;
    const { actions } = (await call(agent, "svc.plan_rollback")).structuredContent;
    const result = await call(await operator("operator"), "svc.execute_rollback", {
      run_id: "undone",
      confirm: true,
    });
    expect(result.structuredContent).toEqual({
      compensated: [1, 0],
      skipped: [],
      failed: [],
      unrecoverable: [],
      unresolved: [],
      unmanifested: [],
      deferred: [],
      awaiting_approval: [],
      unverified: [],
      complete: true,
    });
    const calls = upstreamCalls().slice(before);
    expect(calls.map(({ name, arguments: { id } }) => [name, id])).toEqual([
      ["delete", second],
      ["get", second],
      ["delete", first],
      ["get", first],
    ]);
    expect(calls[0]._meta).toMatchObject({
      "svc/idempotency_key": actions[0].idempotency_key,
      "svc/run_id": "undone",
      "svc/step": 1,
    });
    expect((await g.events("undone")).slice(4)).toEqual([
      "compensating",
      "verified",
      "compensated",
      "compensating",
      "verified",
      "compensated",
    ]);
    const again = await call(await operator("operator"), "svc.execute_rollback", {
      run_id: "undone",
      confirm: true,
    });
    expect(again.structuredContent).toMatchObject({ compensated: [], skipped: [1, 0], complete: true });
    expect(upstreamCalls()).toHaveLength(before + 4);
  });

  it(`makes three attempts with the same key ${verifies("core.rollback.gateway-attempts", "core.limit.gateway-readback")}`, async () => {
    const other = join(tempDir("attempts"), "messages.jsonl");
    const manifests = FAKE_MANIFESTS.replace(
      "args: {id: $result.id}, kind",
      "args: {id: $result.id, fail_times: $args.fail_times}, kind",
    );
    const h = await testGateway({ upstreams: [fakeUpstream({ env: { FAKE_LOG: other } })], manifests });
    const deletes = () =>
      readFileSync(other, "utf8")
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line))
        .filter(({ params }) => params?.name === "delete");
    const agent = await h.connect("agent", { headers: { "svc-run-id": "tries" } });
    await call(agent, "create", { fail_times: 2 });
    const admin = await h.connect("admin", { path: "/operator/mcp" });
    const good = await call(admin, "svc.execute_rollback", { run_id: "tries", confirm: true });
    expect(good.structuredContent).toMatchObject({ compensated: [0], complete: true });
    expect(deletes()).toHaveLength(3);
    expect(new Set(deletes().map(({ params }) => params._meta["svc/idempotency_key"])).size).toBe(1);

    const second = await h.connect("agent", { headers: { "svc-run-id": "gives-up" } });
    await call(second, "create", { fail_times: 99 });
    const bad = await call(admin, "svc.execute_rollback", { run_id: "gives-up", confirm: true });
    expect(bad.structuredContent).toMatchObject({
      failed: [{ step: 0, error: expect.stringContaining("cannot delete") }],
      complete: false,
    });
    expect(deletes()).toHaveLength(6);
    expect((await h.events("gives-up")).slice(2)).toEqual(["compensating", "compensation_failed"]);
  });

  it(`waits for approvals unless an operator gives all at once ${verifies("core.compensation-approval.gateway-all", "core.compensation-approval.operator-decision")}`, async () => {
    const h = await testGateway({
      manifests: `
- tool: create
  effect: compensable
  permission: p
  compensation: {tool: delete, args: {id: $result.id}, requires_approval: true}
- {tool: delete, effect: idempotent, permission: p}
`,
    });
    const agent = await h.connect("agent", { headers: { "svc-run-id": "asks" } });
    await call(agent, "create");
    const admin = await h.connect("operator", { path: "/operator/mcp" });
    const waits = await call(admin, "svc.execute_rollback", { run_id: "asks", confirm: true });
    expect(waits.structuredContent).toMatchObject({
      awaiting_approval: [0],
      compensated: [],
      complete: false,
    });
    // Who may approve one request may still not approve all of a rollback, here or over the API.
    const all = { confirm: true, approve_compensations: true };
    const approver = await h.connect("approver", { path: "/operator/mcp" });
    const refused = await call(approver, "svc.execute_rollback", { run_id: "asks", ...all });
    expect([refused.isError, refused.content[0].text]).toEqual([true, "operator role required"]);
    const job = await fetch(`${h.url}/v1/runs/asks/rollback`, {
      method: "POST",
      headers: { authorization: "Bearer approver", "content-type": "application/json" },
      body: JSON.stringify(all),
    });
    expect([job.status, await job.json()]).toEqual([403, { error: "operator role required" }]);
    expect((await h.trail("asks")).map(({ event }) => event)).toEqual(["intended", "succeeded"]);
    const done = await call(admin, "svc.execute_rollback", { run_id: "asks", ...all });
    expect(done.structuredContent).toMatchObject({ awaiting_approval: [], compensated: [0], complete: true });
  });

  it("works over the API too, as a job of the gateway", async () => {
    const agent = await g.connect("agent", { headers: { "svc-run-id": "job" } });
    await call(agent, "create", { n: 3 });
    const headers = { authorization: "Bearer operator", "content-type": "application/json" };
    const started = await fetch(`${g.url}/v1/runs/job/rollback`, {
      method: "POST",
      headers,
      body: '{"confirm":true}',
    });
    expect(started.status).toBe(202);
    const { until } = await import("./support/gateway.ts");
    await until(async () => (await g.events("job")).includes("compensated"), "the job's undo");
  });

  it("of a call whose outcome nobody knows does not guess", async () => {
    const h = await testGateway({ upstreams: [fakeUpstream({ timeout: "100ms" })] });
    const agent = await h.connect("agent", { headers: { "svc-run-id": "unknown" } });
    await call(agent, "hang");
    const admin = await h.connect("admin", { path: "/operator/mcp" });
    const result = await call(admin, "svc.execute_rollback", { run_id: "unknown", confirm: true });
    expect(result.structuredContent).toMatchObject({ unresolved: [0], complete: false });
    expect((await call(admin, "svc.list_runs", { attention: true })).structuredContent.runs).toMatchObject([
      { run_id: "unknown" },
    ]);
  });
});

describe("svc.preview_impact", () => {
  it("shows on both endpoints what a call would do, and does nothing", async () => {
    const before = (await g.events()).length;
    const agent = await g.connect("agent");
    const seen = (await call(agent, "svc.preview_impact", { tool: "create", arguments: { n: 1 } }))
      .structuredContent;
    expect(seen).toMatchObject({
      tool: "create",
      actor: "agent",
      decision: "allow",
      rollback: { undo_tool: "delete", verified: true },
    });
    const auditor = await operator("auditor");
    const unknown = (await call(auditor, "svc.preview_impact", { tool: "no.such" })).structuredContent;
    expect(unknown).toMatchObject({
      tool: "no.such",
      actor: "auditor",
      reasons: ["no manifest is registered for this tool"],
    });
    expect(await g.events()).toHaveLength(before);
  });
});

describe("svc.export_evidence", () => {
  it("reports that no key is set", async () => {
    const result = await call(await operator("auditor"), "svc.export_evidence");
    expect(result).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining("signed bundles are not enabled") }],
    });
  });

  it(`gives a signed bundle ${verifies("core.gateway.tool-export-evidence")}`, async () => {
    const folder = tempDir("key");
    const { private_pem, public_pem } = newKeyPair();
    writeFileSync(join(folder, "s.key"), private_pem, { mode: 0o600 });
    writeFileSync(join(folder, "s.pub"), public_pem);
    const h = await testGateway({ config: { signing_key: join(folder, "s.key") } });
    const agent = await h.connect("agent", { headers: { "svc-run-id": "evident" } });
    await call(agent, "echo");
    const auditor = await h.connect("auditor", { path: "/operator/mcp" });
    const { verifyBundle } = await import("../../src/evidence/bundles/verify-bundle.ts");
    const { readTrustedKeys } = await import("../../src/evidence/key-files.ts");
    for (const [args, kind] of [
      [{ run_id: "evident" }, "run"],
      [{}, "ledger"],
    ] as const) {
      const result = await call(auditor, "svc.export_evidence", args);
      expect(result.structuredContent).toMatchObject({
        kind,
        count: 2,
        key_id: expect.any(String),
        signature: expect.any(String),
      });
      const file = join(folder, `${kind}.json`);
      writeFileSync(file, result.content[1].resource.text);
      expect(await verifyBundle(file, readTrustedKeys([join(folder, "s.pub")]))).toMatchObject({ ok: true });
    }
    expect(await call(auditor, "svc.export_evidence", { run_id: "nobody" })).toMatchObject({ isError: true });
  });
});
