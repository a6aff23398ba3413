/** Containing an agent through the operator endpoint: its steps are undone through the upstream. */
import { beforeAll, expect, it } from "vitest";
import { verifies } from "../support/verifies.ts";
import { call, fakeUpstream, type GatewayTest, testGateway } from "./support/gateway.ts";

let g: GatewayTest;
beforeAll(async () => {
  g = await testGateway({ upstreams: [fakeUpstream()], keys: [{ name: "rogue", role: "agent" }] });
});

it("is an admin's tool, dry without confirm, and undoes through the upstream", async () => {
  verifies("beyond.contain.tool");
  const rogue = await g.connect("rogue", { headers: { "svc-run-id": "wild" } });
  const made = (await call(rogue, "create", { n: 1 })).structuredContent.id;
  const operator = await g.connect("operator", { path: "/operator/mcp" });
  const asked = { actor: "rogue", reason: "it went mad" };
  const refused = await call(operator, "svc.contain", { ...asked, confirm: true });
  expect([refused.isError, refused.content[0].text]).toEqual([true, "admin only"]);

  const admin = await g.connect("admin", { path: "/operator/mcp" });
  for (const args of [
    { actor: "rogue" },
    { reason: "r" },
    { ...asked, since: "soon" },
    { ...asked, actor: "none" },
  ])
    expect((await call(admin, "svc.contain", args)).isError).toBe(true);
  const told = (await call(admin, "svc.contain", asked)).structuredContent;
  expect(told).toMatchObject({ dry_run: true, undone: 1, complete: true, rollback: "yes" });
  expect(await g.events("wild")).toEqual(["intended", "succeeded"]);

  const { job } = (await call(admin, "svc.contain", { ...asked, confirm: true })).structuredContent;
  expect(job).toMatchObject({
    state: "done",
    report: { runs: [{ run_id: "wild", undone: [{ step: 0, tool: "create" }] }], complete: true },
  });
  expect((await g.events("wild")).slice(2)).toEqual(["compensating", "verified", "compensated"]);
  const gone = await call(await g.connect("agent"), "get", { id: made });
  expect(gone.structuredContent).toMatchObject({ exists: false });
  await expect(g.connect("rogue")).rejects.toThrow();
  const again = (await call(admin, "svc.contain", { contain_id: job.id })).structuredContent;
  expect(again.job).toEqual(job);
  const unknown = await call(admin, "svc.contain", { contain_id: "ctn_none" });
  expect([unknown.isError, unknown.content[0].text]).toEqual([true, "unknown containment ctn_none"]);
});
