import { beforeAll, describe, expect, it } from "vitest";
import { type TestServer, testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

let s: TestServer;
beforeAll(async () => {
  s = await testServer();
});
let n = 0;
async function run(body: Record<string, unknown> = {}, key = "agent"): Promise<string> {
  const id = `run-${n++}`;
  const opened = await s.call(key, "POST", "/v1/runs", {
    permissions: ["crm.read", "crm.write", "mail.send"],
    run_id: id,
    ...body,
  });
  expect(opened.status).toBe(201);
  return id;
}
const ask = (id: string, tool: string, args: unknown = {}, more = {}, headers = {}) =>
  s.call("agent", "POST", `/v1/runs/${id}/intents`, { tool, args, reason: "r", ...more }, headers);

describe("agent routes", () => {
  it("open a run, ask, report, read", async () => {
    verifies(
      "contract.run.fields",
      "contract.run.absent-is-null",
      "contract.run.generated-id",
      "contract.step.fields",
      "core.run.actor-key-name",
      "core.run.mode-default",
      "core.run.creation-response",
      "core.step.tool-and-reason",
      "core.step.effect-and-status",
      "core.route.runs-post-201",
      "core.route.runs-post-run-id",
      "core.route.runs-get",
      "core.route.runs-get-own",
      "core.route.run-get",
    );
    const opened = await s.call("agent", "POST", "/v1/runs", { permissions: ["crm.write"] });
    expect(opened.status).toBe(201);
    expect(opened.body).toEqual({
      run_id: expect.stringMatching(/^run_[0-9a-f]{8}-[0-9a-f]{4}-7/),
      mode: "enforce",
      scope_seal: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
    });
    const id = opened.body.run_id as string;
    expect((await ask(id, "crm.create", { name: "x" })).body).toEqual({ decision: "allow", step: 0 });
    expect((await s.call("agent", "GET", `/v1/runs/${id}`)).body).toMatchObject({
      unresolved: [0],
      steps: [{ status: "intended" }],
    });
    const outcome = await s.call("agent", "POST", `/v1/runs/${id}/steps/0/outcome`, {
      status: "succeeded",
      result: { id: 7 },
    });
    expect(outcome).toMatchObject({ status: 200, body: { step: 0, status: "succeeded" } });
    const again = await s.call("agent", "POST", `/v1/runs/${id}/steps/0/outcome`, { status: "failed" });
    expect(again).toMatchObject({
      status: 409,
      body: { error: expect.stringContaining("already reported") },
    });
    const { body } = await s.call("agent", "GET", `/v1/runs/${id}`);
    expect(body).toEqual({
      run_id: id,
      actor: "agent",
      mode: "enforce",
      tenant: null,
      environment: null,
      reason: null,
      scope: { permissions: ["crm.write"], seal: opened.body.scope_seal },
      created_ms: s.env.now(),
      steps: [
        {
          step: 0,
          tool: "crm.create",
          reason: "r",
          effect: "compensable",
          status: "succeeded",
          depends_on: [],
          compensation_tool: "crm.delete",
          handle: expect.stringMatching(/^[0-9a-f]{64}$/),
          error: null,
          manifest_version: "1",
          risk_score: 0,
          args_hash: expect.stringMatching(/^sha256:/),
          result_hash: expect.stringMatching(/^sha256:/),
          intended_ms: s.env.now(),
          finished_ms: s.env.now(),
        },
      ],
      unresolved: [],
    });
    expect((await s.call("agent", "GET", "/v1/runs")).body.runs).toContain(id);
    expect((await s.call("agent2", "GET", "/v1/runs")).body.runs).not.toContain(id);
    expect((await s.call("auditor", "GET", "/v1/runs")).body.runs).toContain(id);
  });

  it("hide other agents' runs, on every route, with the same words as for none", async () => {
    verifies(
      "core.route.run-get-foreign-404",
      "core.route.run-get-404",
      "core.http.foreign-run-404",
      "contract.readings.admin-without-agent",
    );
    const id = await run();
    for (const [method, path] of [
      ["GET", ""],
      ["POST", "/intents"],
      ["POST", "/steps/0/outcome"],
      ["GET", "/export"],
      ["POST", "/steps/0/resolve"],
      ["POST", "/approvals"],
    ] as const) {
      const body = method === "POST" ? { tool: "t", args: {}, reason: "r" } : undefined;
      const foreign = await s.call("agent2", method, `/v1/runs/${id}${path}`, body);
      const none = await s.call("agent2", method, `/v1/runs/none${path}`, body);
      expect(foreign.status).toBe(404);
      expect(foreign.body.error.replace(id, "none")).toBe(none.body.error);
    }
    expect((await s.call("agent", "GET", `/v1/runs/${id}/export`)).status).toBe(403);
    expect((await s.call("admin", "POST", "/v1/runs", { permissions: [] })).status).toBe(403);
  });

  it.each([
    [{ permissions: "x" }, "permissions"],
    [{}, "permissions: is required"],
    [{ permissions: [], extra: 1 }, "unknown field extra"],
    [{ permissions: [""] }, "permissions[0]"],
    [{ permissions: [], mode: "off" }, "mode"],
    [{ permissions: [], run_id: ".x" }, "run_id"],
    [{ permissions: [], run_id: "a".repeat(129) }, "run_id"],
    [{ permissions: [], run_id: "x\n" }, "run_id"],
    [[], "body"],
    ["null", "body"],
    ['{"permissions":[],"permissions":[]}', "duplicate key"],
    ['{"permissions":[],"__proto__":1}', "__proto__"],
    ["{", "invalid JSON"],
    ["", "permissions"],
  ])("refuse to open a run with %j", async (body, why) => {
    verifies(
      "core.route.runs-post-permissions",
      "core.route.runs-post-400-body",
      "contract.http.unknown-field",
    );
    const { status, body: answer } = await s.call("agent", "POST", "/v1/runs", body);
    expect(status).toBe(400);
    expect(Object.keys(answer)).toEqual(["error"]);
    expect(answer.error).toContain(why);
  });

  it("accept run ids of 128 characters and refuse one that exists", async () => {
    const id = "a".repeat(128);
    await run({ run_id: id });
    expect((await s.call("agent2", "POST", "/v1/runs", { permissions: [], run_id: id })).status).toBe(409);
  });

  it.each(["01", "1e0", "-1", "1.0", "9007199254740993", "x", "%00", "1%2f2"])(
    "refuse the step number %s",
    async (step) => {
      const id = await run();
      expect(
        (await s.call("agent", "POST", `/v1/runs/${id}/steps/${step}/outcome`, { status: "failed" })).status,
      ).toBe(400);
    },
  );

  it.each([
    [{ tool: "crm.get", args: {} }, "reason"],
    [{ tool: "crm.get", reason: "r" }, "args"],
    [{ args: {}, reason: "r" }, "tool"],
    [{ tool: "", args: {}, reason: "r" }, "tool"],
    [{ tool: "crm.get", args: {}, reason: "r", depends_on: [-1] }, "depends_on"],
    [{ tool: "crm.get", args: {}, reason: "r", depends_on: [0] }, "depends_on"],
    [{ tool: "crm.get", args: {}, reason: "r", depends_on: [0.5] }, "depends_on"],
    [{ tool: "crm.get", args: {}, reason: "r", depends_on: ["0"] }, "depends_on"],
    [{ tool: "crm.get", args: {}, reason: "r", depends_on: Array(100_000).fill(0) }, "depends_on"],
    ['{"tool":"crm.get","args":{"n":9007199254740993},"reason":"r"}', "2^53"],
    [`{"tool":"crm.get","args":${"[".repeat(5_000)}${"]".repeat(5_000)},"reason":"r"}`, "deeper"],
  ])("refuse the intent %j", async (body, why) => {
    const id = await run();
    const answer = await s.call("agent", "POST", `/v1/runs/${id}/intents`, body);
    expect(answer.status).toBe(400);
    expect(answer.body.error).toContain(why);
    expect((await s.call("auditor", "GET", `/v1/runs/${id}/export`)).text).toBe("");
  });

  it("give a retry with the same Idempotency-Key the first answer", async () => {
    verifies("contract.http.idempotency-intent", "contract.http.idempotency-outcome");
    const id = await run();
    const key = { "idempotency-key": "k1" };
    expect((await ask(id, "crm.get", { a: 1 }, {}, key)).body).toEqual({ decision: "allow", step: 0 });
    expect((await ask(id, "crm.get", { a: 1 }, {}, key)).body).toEqual({ decision: "allow", step: 0 });
    expect((await ask(id, "crm.get", { a: 2 }, {}, key)).status).toBe(409);
    expect((await ask(id, "crm.get", { a: 1 })).body.step).toBe(1);
    const outcome = () =>
      s.call("agent", "POST", `/v1/runs/${id}/steps/0/outcome`, { status: "succeeded" }, key);
    expect((await outcome()).status).toBe(200);
    expect((await outcome()).body).toEqual({ step: 0, status: "succeeded" });
  });

  it("refuse permissions beyond the cap and modes without allow_observe", async () => {
    const capped = await testServer({
      keys: [{ name: "capped", role: "agent", max_permissions: ["crm.*"], allow_observe: false }],
    });
    const open = (body: unknown) => capped.call("capped", "POST", "/v1/runs", body);
    expect((await open({ permissions: ["crm.read"] })).status).toBe(201);
    expect(await open({ permissions: ["mail.send"] })).toMatchObject({
      status: 403,
      body: { error: expect.stringContaining("mail.send") },
    });
    expect((await open({ permissions: ["crm.read"], mode: "observe" })).status).toBe(403);
    expect((await open({ permissions: ["crm.read"], mode: "advise" })).status).toBe(403);
  });

  it("export the trail as JSON lines or as one object", async () => {
    verifies(
      "contract.readings.export-ndjson",
      "contract.readings.export-json",
      "core.route.export",
      "core.event.trail-http",
    );
    const id = await run();
    await ask(id, "crm.get");
    await ask(id, "nope");
    const lines = await s.call("auditor", "GET", `/v1/runs/${id}/export`);
    expect(lines.headers["content-type"]).toBe("application/x-ndjson");
    const records = lines.text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(records.map((record) => record.event)).toEqual(["intended", "blocked"]);
    const object = await s.call("auditor", "GET", `/v1/runs/${id}/export`, undefined, {
      accept: "application/json",
    });
    expect(object.body).toEqual({ records });
    expect((await s.call("auditor", "GET", "/v1/runs/none/export")).status).toBe(404);
  });
});
