/** `svc.preview_impact` on both endpoints: what a call would do, before it is made. */
import { beforeAll, describe, expect, it } from "vitest";
import { verifies } from "../support/verifies.ts";
import { call, fakeUpstream, type GatewayTest, testGateway } from "./support/gateway.ts";

let g: GatewayTest;
beforeAll(async () => {
  g = await testGateway({ upstreams: [fakeUpstream({})] });
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
