/** Containing an agent through the operator endpoint: its steps are undone through the upstream. */
import { beforeAll, expect, it } from "vitest";
import { verifies } from "../support/verifies.ts";
import { call, FAKE_MANIFESTS, fakeUpstream, type GatewayTest, testGateway } from "./support/gateway.ts";

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

it("says beforehand which undos no upstream can run, and why", async () => {
  verifies("beyond.contain.means");
  const manifests = `${FAKE_MANIFESTS}
- {tool: far.make, effect: compensable, permission: fake.write, compensation: {tool: far.unmake, args: {}}}
`;
  const far = await testGateway({
    upstreams: [fakeUpstream()],
    manifests,
    keys: [{ name: "rogue", role: "agent" }],
  });
  const post = (path: string, body: object) =>
    fetch(`${far.url}${path}`, {
      method: "POST",
      headers: { authorization: "Bearer rogue", "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  const rogue = await far.connect("rogue", { headers: { "svc-run-id": "wild" } });
  await call(rogue, "create", { n: 1 });
  expect((await post("/v1/runs", { run_id: "far", permissions: ["fake.write"] })).status).toBe(201);
  for (const n of [0, 1]) {
    await post("/v1/runs/far/intents", { tool: "far.make", args: {}, reason: "r" });
    const outcome = { status: "succeeded", result: {} };
    expect((await post(`/v1/runs/far/steps/${n}/outcome`, outcome)).status).toBe(200);
  }
  const admin = await far.connect("admin", { path: "/operator/mcp" });
  const asked = { actor: "rogue", reason: "it went mad" };
  const told = (await call(admin, "svc.contain", asked)).structuredContent;
  const why = "nothing here can undo it: no upstream offers far.unmake";
  expect(told).toMatchObject({ dry_run: true, undone: 1, left: 2, complete: false });
  expect(told.runs.find((run: { run_id: string }) => run.run_id === "far")).toMatchObject({
    undone: [],
    cannot: [1, 0].map((step) => ({ step, tool: "far.make", why })),
  });
  const { job } = (await call(admin, "svc.contain", { ...asked, confirm: true })).structuredContent;
  expect(job.report).toMatchObject({ undone: told.undone, left: told.left, complete: false });
});
