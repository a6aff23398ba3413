/** The governed call: allowed calls, records, and the agent's answers. */
import { beforeAll, describe, expect, it } from "vitest";
import { SERVICE_LIMITS } from "../../src/kernel/limits.ts";
import { aMoment } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";
import {
  ask,
  call,
  fakeUpstream,
  type GatewayTest,
  testGateway,
  toolNames,
  until,
} from "./support/gateway.ts";

let g: GatewayTest;
beforeAll(async () => {
  g = await testGateway();
});

const ECHO = {
  name: "echo",
  title: "Echo",
  description: "Echo",
  inputSchema: {
    type: "object",
    properties: { a: { type: "number" } },
    additionalProperties: true,
    "x-vendor": 1,
  },
  annotations: { readOnlyHint: true, "x-hint": true },
  _meta: { "acme/tag": "t" },
  "x-unknown": { deep: [1] },
};

describe.each(["legacy", "modern"] as const)("a client of the %s era", (mode) => {
  it(`gets definitions and results unchanged ${verifies("contract.gateway.fields-pass", "contract.gateway.meta-answer", "core.gateway.proxies-tools")}`, async () => {
    const client = await g.connect("agent", { mode });
    const { tools } = await ask(client, "tools/list");
    expect(tools[0]).toEqual(ECHO);
    const result = await call(client, "echo", { a: 1, note: "x" });
    const { _meta, ...rest } = result;
    expect(rest).toMatchObject({
      content: [{ type: "text", text: '{"a":1,"note":"x"}', "x-item": 1 }],
      structuredContent: { got: { a: 1, note: "x" }, meta: null },
      "x-result": 5,
    });
    expect(_meta).toMatchObject({
      "acme/res": "r",
      "svc/decision": "allow",
      "svc/step": 0,
      "svc/run_id": expect.stringMatching(/^run_/),
    });
    expect((await call(client, "image")).content).toEqual([
      { type: "image", data: "AAAA", mimeType: "image/png", annotations: { audience: ["user"] } },
    ]);
  });

  it(`is an intent, then the call, then the outcome ${verifies("contract.gateway.meta-reason", "contract.gateway.meta-reason-default", "contract.gateway.meta-depends-on")}`, async () => {
    const client = await g.connect("agent", { mode, headers: { "svc-run-id": `calls-${mode}` } });
    await call(client, "echo", {}, { "svc/reason": "to look around" });
    await call(client, "get", {}, { "svc/depends_on": [0] });
    const trail = await g.trail(`calls-${mode}`);
    expect(trail.map(({ event, tool, reason }) => [event, tool, reason])).toEqual([
      ["intended", "echo", "to look around"],
      ["succeeded", "echo", "to look around"],
      ["intended", "get", "tools/call get"],
      ["succeeded", "get", "tools/call get"],
    ]);
    const step = await g.service.core.store.get("steps", `calls-${mode}/1`);
    expect(step?.depends_on).toEqual([0]);
    await expect(call(client, "echo", {}, { "svc/depends_on": ["x"] })).rejects.toMatchObject({
      code: -32602,
    });
    await expect(call(client, "echo", {}, { "svc/depends_on": [9] })).rejects.toMatchObject({ code: -32602 });
  });

  it(`answers a block as a tool result ${verifies("contract.gateway.blocked-result", "contract.gateway.blocked-structured")}`, async () => {
    const client = await g.connect("agent", { mode });
    const result = await call(client, "drop_all_tables", { now: true });
    const reasons = ["no manifest is registered for this tool"];
    expect(result).toMatchObject({
      isError: true,
      content: [{ type: "text", text: reasons[0] }],
      structuredContent: { decision: "block", reasons, approval_id: null },
      _meta: { "svc/decision": "block" },
    });
    expect(result._meta).not.toHaveProperty("svc/step");
    expect((await g.events(result._meta["svc/run_id"])).at(-1)).toBe("blocked");
  });

  it(`sees progress and log messages ${verifies("contract.gateway.progress")}`, async () => {
    const seen: unknown[] = [];
    const client = await g.connect("agent", {
      mode,
      prepare: (one) =>
        one.setNotificationHandler("notifications/message", ({ params }) => void seen.push(params.data)),
    });
    const progress: unknown[] = [];
    const meta = mode === "modern" ? { "io.modelcontextprotocol/logLevel": "info" } : undefined;
    await call(client, "progress", {}, undefined, { onprogress: (told: unknown) => progress.push(told) });
    await until(() => progress.length >= 1, "progress");
    expect(progress[0]).toMatchObject({ progress: 1, total: 2, message: "part 1" });
    if (mode === "legacy") await client.setLoggingLevel("info");
    await call(client, "log", {}, meta);
    await until(() => seen.length >= 1, "a log message");
    expect(seen).toEqual([{ said: "hello" }]);
  });
});

describe("outcomes", () => {
  it(`are failed when the tool reports it, without the values it repeats ${verifies("contract.values.echoed-arguments")}`, async () => {
    const client = await g.connect("agent");
    const result = await call(client, "fail", { secret: "hunter2-of-canary" });
    expect(result).toMatchObject({
      isError: true,
      content: [{ text: "it did not work: hunter2-of-canary" }],
    });
    const trail = await g.trail(result._meta["svc/run_id"]);
    expect(trail.map(({ event }) => event)).toEqual(["intended", "failed"]);
    expect(trail[1]).toMatchObject({ detail: "it did not work: [argument]" });
    for (const args of [{ secret: "Q7" }, { secret: 7304 }, { secret: "JANE DOE", name: "Jane Doe" }]) {
      const failed = await call(client, "fail", args);
      expect((await g.trail(failed._meta["svc/run_id"])).at(-1)).toMatchObject({
        detail: "it did not work: [argument]",
      });
    }
    const long = "x".repeat(SERVICE_LIMITS.error_chars - 30);
    const cut = await call(client, "fail", { filler: "unrelated", secret: `${long} hunter2-of-canary` });
    expect((await g.trail(cut._meta["svc/run_id"])).at(-1)?.detail).toBe("it did not work: [argument]");
    expect(JSON.stringify(await g.trail())).not.toContain("hunter2-of-canary");
    expect(g.logged.join("\n")).not.toContain("hunter2-of-canary");
  });

  it("that cannot be recorded are not answered as if they were: a run whose seal broke in between", async () => {
    const client = await g.connect("agent", { headers: { "svc-run-id": "broken-seal" } });
    const { store } = g.service.core;
    const answer = call(client, "slow", { ms: 400 }).then(
      (result) => ({ result }),
      (error: unknown) => ({ error }),
    );
    await until(async () => (await store.get("steps", "broken-seal/0")) !== undefined, "the intent");
    const run = (await store.get("runs", "broken-seal"))!;
    const scope = { ...run.scope, permissions: ["everything"] };
    await store.transact({ run: (tx) => tx.put("runs", "broken-seal", { ...run, scope }) });
    expect(await answer).toMatchObject({
      error: { code: -32009, message: expect.stringContaining("its outcome could not be recorded") },
    });
    expect((await store.get("steps", "broken-seal/0"))?.status).toBe("intended");
  });

  it("that an operator reported earlier stay, and the agent gets its answer", async () => {
    const client = await g.connect("agent", { headers: { "svc-run-id": "told-before" } });
    const answer = call(client, "slow", { ms: 400 });
    await until(
      async () => (await g.service.core.store.get("steps", "told-before/0")) !== undefined,
      "the intent",
    );
    const told = await fetch(`${g.url}/v1/runs/told-before/steps/0/resolve`, {
      method: "POST",
      headers: { authorization: "Bearer operator", "content-type": "application/json" },
      body: JSON.stringify({ status: "succeeded", note: "seen in the log" }),
    });
    expect(told.status).toBe(200);
    expect((await answer).content[0].text).toBe("late");
    expect(await g.events("told-before")).toEqual(["intended", "succeeded"]);
  });

  it("are failed for a protocol error, which passes as it is", async () => {
    const client = await g.connect("agent", { headers: { "svc-run-id": "rpc-error" } });
    await expect(call(client, "rpc_error")).rejects.toMatchObject({
      code: -32050,
      message: expect.stringContaining("upstream boom"),
      data: { why: "x" },
    });
    expect(await g.trail("rpc-error")).toMatchObject([
      { event: "intended" },
      { event: "failed", detail: "upstream boom" },
    ]);
  });

  it(`keep what an undo may name ${verifies("contract.readings.gateway-result-structured", "contract.readings.gateway-result-text", "contract.readings.gateway-result-content")}`, async () => {
    const compensated = ["structured", "text_json", "plain"]
      .map(
        (tool) =>
          `- {tool: ${tool}, effect: compensable, permission: p, compensation: {tool: delete, args: {id: ${tool === "plain" ? '"$result.content[1].text"' : "$result.id"}}}}\n`,
      )
      .join("");
    const other = await testGateway({
      manifests: `${compensated}- {tool: delete, effect: idempotent, permission: p}\n`,
    });
    const client = await other.connect("agent", { headers: { "svc-run-id": "kept" } });
    for (const tool of ["structured", "text_json", "plain"]) await call(client, tool);
    const { structuredContent } = await call(client, "svc.plan_rollback");
    expect(structuredContent.actions.map(({ args }: { args: unknown }) => args)).toEqual([
      { id: "b" },
      { id: "from-text" },
      { id: "from-structured" },
    ]);
  });

  it(`are uncertain after a timeout, and a late answer changes nothing ${verifies("core.step-state.gateway-timeout-uncertain")}`, async () => {
    const other = await testGateway({ upstreams: [fakeUpstream({ timeout: "2s" })] });
    const client = await other.connect("agent", { headers: { "svc-run-id": "late" } });
    const result = await call(client, "slow", { ms: 2_400 });
    expect(result).toMatchObject({
      isError: true,
      structuredContent: { status: "uncertain" },
      _meta: { "svc/step": 0 },
    });
    expect(result.content[0].text).toContain("not known");
    await aMoment(500);
    expect(await other.events("late")).toEqual(["intended", "uncertain"]);
    const answer = await fetch(`${other.url}/v1/runs/late`, { headers: { authorization: "Bearer agent" } });
    expect(await answer.json()).toMatchObject({ unresolved: [0] });
    expect((await call(client, "echo", {})).isError).toBeUndefined();
  });

  it(`are uncertain when the upstream dies, and it comes back ${verifies("core.step-state.gateway-transport-uncertain", "contract.gateway.reconnects")}`, async () => {
    const other = await testGateway();
    const client = await other.connect("agent", { headers: { "svc-run-id": "dies" } });
    const result = await call(client, "die");
    expect(result).toMatchObject({ isError: true, structuredContent: { status: "uncertain" } });
    expect(await other.events("dies")).toEqual(["intended", "uncertain"]);
    await until(async () => (await call(client, "echo")).isError !== true, "the upstream is back");
  });

  it("are uncertain when the client cancels", async () => {
    const client = await g.connect("agent", { headers: { "svc-run-id": "cancelled" } });
    const abort = new AbortController();
    const pending = call(client, "hang", {}, undefined, { signal: abort.signal });
    await until(async () => (await g.events("cancelled")).includes("intended"), "the intent");
    abort.abort();
    await expect(pending).rejects.toThrow();
    await until(async () => (await g.events("cancelled")).length === 2, "the outcome");
    expect(await g.trail("cancelled")).toMatchObject([
      { event: "intended" },
      { event: "uncertain", detail: expect.stringContaining("cancelled") },
    ]);
  });

  it("count what the upstream still says after a cancellation", async () => {
    const client = await g.connect("agent", { headers: { "svc-run-id": "cancelled-late" } });
    const abort = new AbortController();
    // The fake's slow tool stops on cancellation, its log tool does not and is done 20 ms later.
    const pending = call(client, "log", {}, undefined, { signal: abort.signal });
    await until(async () => (await g.events("cancelled-late")).includes("intended"), "the intent");
    abort.abort();
    await expect(pending).rejects.toThrow();
    await until(async () => (await g.events("cancelled-late")).length === 2, "the outcome");
    expect(await g.events("cancelled-late")).toEqual(["intended", "succeeded"]);
  });
});

describe("modes", () => {
  const manifests = `
- {tool: echo, effect: read, permission: fake.read}
- {tool: create, effect: irreversible, permission: fake.write}
- {tool: get, effect: read, permission: fake.read, lifecycle: draft}
`;

  it(`enforce lists tools with a manifest and in scope ${verifies("contract.gateway.list-enforce", "core.gateway.config-mode")}`, async () => {
    const other = await testGateway({ manifests, config: { permissions: ["fake.read"] } });
    const client = await other.connect("agent");
    expect(await toolNames(client)).toEqual(["echo"]);
    const result = await call(client, "create");
    expect(result.structuredContent.reasons).toEqual(["permission fake.write is not in the run's scope"]);
  });

  it(`observe lists and forwards everything, and says what it would have done ${verifies("contract.gateway.list-observe", "core.gateway.observe-unmanifested")}`, async () => {
    const other = await testGateway({ manifests, mode: "observe", config: { permissions: ["fake.read"] } });
    const client = await other.connect("agent", { headers: { "svc-run-id": "observed" } });
    expect(await toolNames(client)).toContain("counted");
    const result = await call(client, "counted");
    expect(result.isError).toBeUndefined();
    expect(result._meta).toMatchObject({
      "svc/decision": "would_block",
      "svc/reasons": ["no manifest is registered for this tool"],
      "svc/step": 0,
    });
    expect(await other.events("observed")).toEqual(["would_block", "intended", "succeeded"]);
    await expect(call(client, "no_such_tool")).rejects.toMatchObject({ code: -32602 });
    expect(await other.events("observed")).toHaveLength(3);
  });

  it("observe needs a key that may observe", async () => {
    const other = await testGateway({
      mode: "observe",
      keys: [{ name: "strict", role: "agent", allow_observe: false }],
    });
    await expect(other.connect("strict")).rejects.toThrow(/allow_observe/);
  });

  it(`a halt blocks in every mode ${verifies("core.halt-state.by-gateway", "core.halt-state.resume-gateway")}`, async () => {
    const other = await testGateway({ mode: "observe" });
    const agent = await other.connect("agent");
    const admin = await other.connect("admin", { path: "/operator/mcp" });
    const halted = await call(admin, "svc.halt", { reason: "fire drill" });
    expect(halted.structuredContent).toMatchObject({ reason: "fire drill", by: "admin" });
    expect((await call(agent, "echo")).structuredContent).toMatchObject({
      decision: "block",
      reasons: ["kill switch: fire drill"],
    });
    await call(admin, "svc.resume");
    expect((await call(agent, "echo")).isError).toBeUndefined();
  });
});

describe("bad calls", () => {
  it("are refused as what they are", async () => {
    const client = await g.connect("agent");
    const bad = (params: Record<string, unknown>) =>
      expect(ask(client, "tools/call", params)).rejects.toMatchObject({ code: -32602 });
    await bad({});
    await bad({ name: "" });
    await bad({ name: "echo", arguments: [1] });
    await bad({ name: "echo", arguments: {}, task: { ttl: 1 } });
    await bad({ name: "svc.no_such" });
    await expect(ask(client, "acme/custom")).rejects.toMatchObject({ code: -32601 });
  });

  it("with a ledger that cannot be written reach nothing", async () => {
    const other = await testGateway();
    const client = await other.connect("agent");
    await call(client, "create", { n: 1 });
    const { store } = other.service.core;
    const { transact } = store;
    const { SvcError } = await import("../../src/kernel/errors.ts");
    store.transact = () => Promise.reject(new SvcError("unavailable", "the disk is gone"));
    await expect(call(client, "create", { n: 2 })).rejects.toMatchObject({ code: -32053 });
    store.transact = transact;
    expect(JSON.parse((await call(client, "counted")).content[0].text)).toMatchObject({ rows: 1 });
  });
});
