/** The same console on the gateway: its pages, and a rollback that goes through the upstream. */

import { expect, it } from "vitest";
import { call, fakeUpstream, testGateway } from "../gateway/support/gateway.ts";
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

it("has none where the configuration asks for none", async () => {
  const { url } = await testGateway({ upstreams: [fakeUpstream()] });
  expect((await new Client(url).get("/console")).status).toBe(404);
});
