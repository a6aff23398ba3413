/** `svc.preview_impact` on both endpoints: what a call would do, before it is made. */
import { beforeAll, describe, expect, it } from "vitest";
import { verifies } from "../support/verifies.ts";
import { call, fakeUpstream, type GatewayTest, testGateway } from "./support/gateway.ts";

let g: GatewayTest;
beforeAll(async () => {
  g = await testGateway({ upstreams: [fakeUpstream({})] });
});

const HINTED =
  "version: 1\nrules: [{id: no, match: {tool: echo}, action: deny, reason: no echo, hint: use get}]\n";

describe("a blocked call", () => {
  it("tells what can be done instead, in its text and its structure", async () => {
    verifies("beyond.hint.gateway");
    const strict = await testGateway({ upstreams: [fakeUpstream({})], policy: HINTED });
    const result = await call(await strict.connect("agent"), "echo", { a: 1 });
    expect(result).toMatchObject({
      isError: true,
      content: [{ type: "text", text: "no echo\nhint: use get" }],
      structuredContent: { decision: "block", reasons: ["no echo"], hints: ["use get"] },
    });
  });
});

describe("svc.preview_impact", () => {
  it("answers agents and operators alike, and changes nothing", async () => {
    verifies("core.gateway.agent-preview-impact", "ops.impact.gateway");
    const before = await g.service.core.store.head();
    for (const client of [await g.connect("agent"), await g.connect("auditor", { path: "/operator/mcp" })]) {
      const unknown = await call(client, "svc.preview_impact", { tool: "nobody.knows", arguments: {} });
      expect(JSON.stringify(unknown)).toContain("no manifest is registered");
      const known = await call(client, "svc.preview_impact", { tool: "echo", arguments: { a: 1 } });
      expect(JSON.stringify(known)).not.toContain("no manifest is registered");
    }
    expect(await g.service.core.store.head()).toEqual(before);
  });
});
