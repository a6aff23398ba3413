/** The same console on the gateway: its pages, and a rollback that goes through the upstream. */
import { expect, it } from "vitest";
import { call, FAKE_MANIFESTS, fakeUpstream, testGateway } from "../gateway/support/gateway.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";
import { Client, loggedIn } from "./support/client.ts";

it(`serves the console that its configuration asks for ${verifies("core.purpose.process-gateway-console", "core.gateway.config-console")}`, async () => {
  const { url, connect, service } = await testGateway({
    upstreams: [fakeUpstream()],
    config: { console: "login" },
  });
  const agent = await connect("agent");
  await call(agent, "create", { name: "x" });
  const [row] = await service.core.store.list("runs", { limit: 1 });
  const run = row!.key;
  const operator = await loggedIn(url, "operator");
  expect((await operator.get("/console/tools")).text).toContain("Tool servers");
  const page = await operator.get(`/console/runs/${run}`);
  expect(page.text).toContain("create");
  const begun = await operator.submit(`/console/runs/${run}/rollback`, { confirm: "yes" });
  expect(begun.status).toBe(303);
  const shown = async () => (await operator.get(`/console/runs/${run}`)).text.includes("compensated");
  await until(shown, "the undo to be shown");
});

it("lists what drills say of each undo, and starts them for an operator where they may run", async () => {
  verifies("beyond.drill.console");
  const manifests = FAKE_MANIFESTS.replace("- {tool: delete,", "  drill: {args: {n: 7}}\n- {tool: delete,");
  const config = { console: "login", environment: "staging" };
  const { url } = await testGateway({
    manifests,
    config: { ...config, drills: { environments: ["staging"] } },
  });
  const reader = await loggedIn(url, "auditor");
  expect((await reader.get("/console")).text).toContain('href="/console/drills"');
  const seen = (await reader.get("/console/drills")).text;
  expect(seen).toContain("never proven");
  expect(seen).not.toContain("<button>Drill");
  expect((await reader.submit("/console/drills", { upstream: "fake", confirm: "yes" })).status).toBe(403);
  const operator = await loggedIn(url, "operator");
  expect((await operator.get("/console/drills")).text).toContain("Drill due tools through fake");
  expect((await operator.submit("/console/drills", { upstream: "fake" })).status).toBe(400);
  expect((await operator.submit("/console/drills", { upstream: "fake", confirm: "yes" })).status).toBe(303);
  const shown = async () => (await reader.get("/console/drills")).text;
  await until(async () => />proven<.*<time datetime="20\d\d-/s.test(await shown()), "the drill to be shown");
  const again = await operator.submit("/console/drills", {
    tool: "create",
    upstream: "fake",
    confirm: "yes",
  });
  expect(again.status).toBe(303);

  const plain = await testGateway({ manifests, config });
  const there = await loggedIn(plain.url, "operator");
  expect((await there.get("/console")).text).not.toContain('href="/console/drills"');
  expect((await there.get("/console/drills")).text).not.toContain("Drill due tools");
  expect((await there.submit("/console/drills", { upstream: "fake", confirm: "yes" })).status).toBe(403);
});

it("has none where the configuration asks for none", async () => {
  const { url } = await testGateway({ upstreams: [fakeUpstream()] });
  expect((await new Client(url).get("/console")).status).toBe(404);
});
