/** The governed call through the gateway: what passes, what is recorded, what is refused. */
import { describe, expect, it, beforeAll } from "vitest";
import { call, fakeUpstream, type GatewayTest, testGateway } from "./support/gateway.ts";
import { verifies } from "../support/verifies.ts";

let g: GatewayTest;
beforeAll(async () => {
  g = await testGateway();
});

describe.each(["legacy", "modern"] as const)("a %s client", (mode) => {
  it("gets definitions and results unchanged, with what happened beside them", async () => {
    const client = await g.connect("agent", { mode });
    const { tools } = await client.listTools();
    const echo = tools.find(({ name }) => name === "echo");
    expect(echo).toEqual({
      name: "echo",
      title: "Echo",
      description: "Echo",
      inputSchema: { type: "object", properties: { a: { type: "number" } }, additionalProperties: true, "x-vendor": 1 },
      annotations: { readOnlyHint: true, "x-hint": true },
      _meta: { "acme/tag": "t" },
      "x-unknown": { deep: [1] },
    });
    const result = await call(client, "echo", { a: 1, note: "x" }, { "svc/reason": "look", traceparent: "00-1" });
    expect(result).toMatchObject({
      content: [{ type: "text", text: '{"a":1,"note":"x"}', "x-item": 1 }],
      structuredContent: { got: { a: 1, note: "x" }, meta: { traceparent: "00-1" } },
      "x-result": 5,
      _meta: { "acme/res": "r", "svc/decision": "allow", "svc/step": 0, "svc/run_id": expect.stringMatching(/^run_/) },
    });
    const run_id = result._meta["svc/run_id"] as string;
    expect(await g.trail(run_id)).toMatchObject([
      { event: "intended", tool: "echo", reason: "look", actor: "agent" },
      { event: "succeeded", tool: "echo" },
    ]);
    expect(verifies("contract.gateway.fields-pass", "contract.gateway.meta-answer", "contract.gateway.meta-reason")).toBeTruthy();
  });
});

describe("refusals", () => {
  it("block what has no manifest", async () => {
    const other = await testGateway({ manifests: "- {tool: echo, effect: read, permission: fake.read}\n" });
    const client = await other.connect("agent");
    expect((await client.listTools()).tools.map(({ name }) => name).filter((name) => !name.startsWith("svc."))).toEqual(["echo"]);
    const result = await call(client, "create");
    expect(result).toMatchObject({
      isError: true,
      content: [{ type: "text", text: "no manifest is registered for this tool" }],
      structuredContent: { decision: "block", reasons: ["no manifest is registered for this tool"], approval_id: null },
    });
    expect(await other.events(result._meta["svc/run_id"])).toEqual(["blocked"]);
    void fakeUpstream;
  });
});
