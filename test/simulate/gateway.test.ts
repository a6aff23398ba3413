/** The gateway captures too: the calls that go through it, with the results of its upstreams. */
import { expect, it } from "vitest";
import { capturedPages } from "../../src/capture/captured-calls.ts";
import type { HistoricCall } from "../../src/simulate/recorded-call.ts";
import { call, testGateway } from "../gateway/support/gateway.ts";
import { verifies } from "../support/verifies.ts";

it("records its calls when capture is on", async () => {
  verifies("ops.capture-config.gateway-records");
  const policy = "version: 1\nrules: [{id: no, match: {tool: create}, action: deny, reason: no}]\n";
  const g = await testGateway({ policy, config: { capture: { enabled: true } } });
  const client = await g.connect("agent", { headers: { "svc-run-id": "captured" } });
  await call(client, "echo", { to: "ann@example.com" });
  await call(client, "create", { a: 1 });
  await g.service.capture!.drain(60_000);
  const calls: HistoricCall[] = [];
  const { store, env } = g.service.core;
  for await (const page of capturedPages(store, { run_id: "captured" }, env.now())) calls.push(...page);
  expect(calls).toMatchObject([
    {
      step: 0,
      tool: "echo",
      args: { to: "[PII:email]" },
      outcome: "succeeded",
      has_result: true,
      result: { got: { to: "[PII:email]" } },
    },
    { step: null, tool: "create", decision: "block", reasons: ["no"], outcome: null },
  ]);
});
