/** How tools are named, which of ours are listed, what an agent is asked for, and how long it may wait. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";
import {
  ask,
  call,
  FAKE_MANIFESTS,
  fakeUpstream,
  type GatewayTest,
  testGateway,
  until,
} from "./support/gateway.ts";

const NAMESPACED = FAKE_MANIFESTS.replaceAll(/tool: (\w+)/g, "tool: fake.$1");
const log = join(tempDir("names"), "seen.jsonl");
const received = () =>
  readFileSync(log, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))
    .filter(({ method }) => method === "tools/call");

let g: GatewayTest;
beforeAll(async () => {
  g = await testGateway({
    upstreams: [fakeUpstream({ namespace: true, env: { FAKE_LOG: log } })],
    manifests: NAMESPACED,
    policy:
      "version: 1\nrules: [{id: ask, match: {tool: fake.create}, action: require_approval, reason: a person must look}]\n",
    config: {
      tool_names: "underscores",
      ask_reason: true,
      own_tools: ["svc.await_approval", "svc_plan_rollback"],
    },
  });
});

const listed = async (key: string, path = "/mcp", from = g) => {
  const { tools } = await ask(await from.connect(key, { path }), "tools/list");
  return tools as {
    name: string;
    inputSchema: { properties?: Record<string, unknown>; required?: string[] };
  }[];
};

describe("tool_names: underscores", () => {
  it(`lists names that every provider takes ${verifies("beyond.names.listed", "beyond.names.own-tools")}`, async () => {
    const agent = (await listed("agent")).map(({ name }) => name);
    expect(agent).toEqual(
      expect.arrayContaining(["fake__create", "svc_plan_rollback", "svc_await_approval"]),
    );
    expect(agent).not.toContain("svc_preview_impact");
    const operator = (await listed("admin", "/operator/mcp")).map(({ name }) => name);
    expect(operator).toEqual(expect.arrayContaining(["svc_approve_action", "svc_halt"]));
    for (const name of [...agent, ...operator]) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
  });

  it(`takes both spellings, and records the dotted one ${verifies("beyond.names.both-spellings", "beyond.names.records-dotted")}`, async () => {
    const client = await g.connect("agent");
    const results = [await call(client, "fake__echo", { a: 1 }), await call(client, "fake.echo", { a: 1 })];
    expect(results[1].content).toEqual(results[0].content);
    expect(results.map(({ _meta }) => _meta["svc/decision"])).toEqual(["allow", "allow"]);
    for (const name of ["svc.plan_rollback", "svc_plan_rollback", "svc_preview_impact"])
      expect(
        (await call(client, name, name.endsWith("impact") ? { tool: "fake__echo" } : {})).isError,
      ).toBeUndefined();
    const records = await g.trail(results[0]._meta["svc/run_id"]);
    expect(new Set(records.map(({ tool }) => tool))).toEqual(new Set(["fake.echo"]));
    const operator = await g.connect("admin", { path: "/operator/mcp" });
    for (const name of ["svc.list_runs", "svc_list_runs"])
      expect((await call(operator, name)).isError).toBeUndefined();
  });

  it(`lists dotted names without it, and takes both all the same ${verifies("beyond.names.default-dots", "beyond.reason.off")}`, async () => {
    const dots = await testGateway({
      upstreams: [fakeUpstream({ namespace: true })],
      manifests: NAMESPACED,
      config: { own_tools: "none" },
    });
    const tools = await listed("agent", "/mcp", dots);
    expect(tools.map(({ name }) => name)).toContain("fake.create");
    expect(tools.some(({ name }) => name.startsWith("svc"))).toBe(false);
    expect(tools.some(({ inputSchema }) => "svc_reason" in (inputSchema.properties ?? {}))).toBe(false);
    const client = await dots.connect("agent");
    const echoed = await call(client, "fake__echo", { svc_reason: "kept" });
    expect(JSON.stringify(echoed)).toContain("kept");
    expect((await call(client, "svc_plan_rollback")).isError).toBeUndefined();
  });

  it(`never guesses which of several tools an unknown name means ${verifies("beyond.names.both-spellings")}`, async () => {
    const names = ["a.b", "a_b", "a/b", "write_file"];
    const FAKE_ONLY = JSON.stringify(names.map((name) => ({ name, inputSchema: { type: "object" } })));
    const clashing = await testGateway({
      upstreams: [fakeUpstream({ namespace: true, env: { FAKE_ONLY } })],
      manifests: [...names, "away"]
        .map((name) => `- {tool: fake.${name}, effect: read, permission: x}\n`)
        .join(""),
      config: { tool_names: "underscores", own_tools: "none" },
    });
    const shown = (await listed("agent", "/mcp", clashing)).map(({ name }) => name);
    expect(shown).toEqual([
      ...[1, 2, 3].map(() => expect.stringMatching(/^fake__a_b_[0-9a-f]{8}$/)),
      "fake__write_file",
    ]);
    const client = await clashing.connect("agent");
    for (const name of ["fake__a_b", "fake_a_b", "fake_write_file"])
      expect(await call(client, name), name).toMatchObject({ isError: true });
    for (const name of ["fake.a_b", "fake.write_file", ...shown])
      expect((await call(client, name))._meta["svc/decision"], name).toBe("allow");
    await expect(call(client, "fake__away")).rejects.toThrow(/nknown tool/);
  });

  it(`refuses an upstream's svc_ names ${verifies("beyond.names.svc-refused")}`, async () => {
    const tool = (name: string) => ({ name, inputSchema: { type: "object" } });
    const FAKE_ONLY = JSON.stringify([tool("svc_halt")]);
    await expect(testGateway({ upstreams: [fakeUpstream({ env: { FAKE_ONLY } })] })).rejects.toThrow(
      /begins with "svc_", which is reserved for the service's own tools; set namespace: true/,
    );
    await expect(testGateway({ config: { own_tools: ["svc.nothing"] } })).rejects.toThrow(
      /own_tools: unknown tool svc.nothing; choose from svc.plan_rollback/,
    );
  });
});

describe("ask_reason", () => {
  it(`adds an optional argument to each tool ${verifies("beyond.reason.listed")}`, async () => {
    const tools = (await listed("agent")).filter(({ name }) => name.startsWith("fake__"));
    expect(tools.length).toBeGreaterThan(5);
    for (const { inputSchema } of tools) {
      expect(inputSchema.properties?.["svc_reason"]).toMatchObject({
        type: "string",
        description: expect.stringContaining("Why you make this call"),
      });
      expect(inputSchema.required ?? []).not.toContain("svc_reason");
    }
  });

  it(`is the reason, and no argument ${verifies("beyond.reason.recorded", "beyond.reason.taken-out")}`, async () => {
    const client = await g.connect("agent");
    const blocked = await call(client, "fake__create", { n: 1, svc_reason: "the customer asked for it" });
    const approval_id = blocked._meta["svc/approval_id"];
    const request = await g.service.core.store.get("approvals", approval_id);
    expect(request).toMatchObject({ tool: "fake.create", arg_names: ["n"] });
    const answer = await fetch(`${g.url}/v1/approvals/${approval_id}`, {
      headers: { authorization: "Bearer admin" },
    });
    expect(await answer.json()).toMatchObject({ arg_names: ["n"] });
    const operator = await g.connect("approver", { path: "/operator/mcp" });
    await call(operator, "svc_approve_action", { approval_id });
    // The same call with another reason is the same call. Its step keeps the reason that was approved.
    const done = await call(client, "fake__create", { n: 1, svc_reason: "as agreed" });
    expect(done._meta["svc/decision"]).toBe("allow");
    await until(() => received().some(({ params }) => params.name === "create"), "the call");
    expect(received().at(-1).params.arguments).toEqual({ n: 1 });
    expect(JSON.stringify(received())).not.toContain("svc_reason");
    const step = await g.service.core.store.get(
      "steps",
      `${done._meta["svc/run_id"]}/${done._meta["svc/step"]}`,
    );
    expect(JSON.stringify(step)).toContain("the customer asked for it");
    expect(JSON.stringify(step)).not.toContain("as agreed");
  });

  it(`is a planned call's reason, whichever spelling names the tool ${verifies("beyond.names.both-spellings", "beyond.reason.taken-out")}`, async () => {
    const client = await g.connect("agent");
    const calls = ["fake__create", "fake.create"].map((tool, n) => ({
      tool,
      arguments: { n, svc_reason: `because of ${n}` },
    }));
    const plan = (await call(client, "svc_propose_plan", { reason: "both of them", calls }))
      .structuredContent;
    expect(plan.calls).toMatchObject(
      [0, 1].map((n) => ({
        tool: "fake.create",
        arg_names: ["n"],
        reason: `because of ${n}`,
        decision: "needs_approval",
      })),
    );
    const operator = await g.connect("approver", { path: "/operator/mcp" });
    const shown = (await call(operator, "svc_show_plan", { plan_id: plan.id })).structuredContent;
    expect(JSON.stringify(shown)).not.toContain("svc_reason");
    await call(operator, "svc_approve_plan", { plan_id: plan.id, card_hash: shown.card_hash });
    for (const n of [0, 1])
      expect((await call(client, "fake__create", { n, svc_reason: "as planned" })).isError).toBeFalsy();
  });
});

describe("svc.await_approval", () => {
  it(`cuts texts that are too long for clients, and says that more follows ${verifies("beyond.await.cut", "beyond.await.progress")}`, async () => {
    const client = await g.connect("agent");
    const { "svc/approval_id": approval_id } = (await call(client, "fake.create", { n: 2 }))._meta;
    const told: { total?: number }[] = [];
    const waiting = call(client, "svc_await_approval", { approval_id, seconds: 3_600 }, undefined, {
      onprogress: (progress: { total?: number }) => void told.push(progress),
    });
    await until(() => told.length > 0, "progress");
    expect(told[0]).toMatchObject({ progress: 0, total: 45 });
    const operator = await g.connect("approver", { path: "/operator/mcp" });
    await call(operator, "svc_deny_action", { approval_id });
    expect((await waiting).structuredContent).toMatchObject({ status: "denied" });
  });
});
