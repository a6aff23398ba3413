/** Plans at the gateway: an agent proposes, an operator's agent decides, and the calls go through in their order. */
import { beforeAll, expect, it } from "vitest";
import { verifies } from "../support/verifies.ts";
import { call, FAKE_MANIFESTS, fakeUpstream, type GatewayTest, testGateway } from "./support/gateway.ts";

let g: GatewayTest;
beforeAll(async () => {
  g = await testGateway({
    upstreams: [fakeUpstream()],
    manifests: FAKE_MANIFESTS,
    policy: "version: 1\nrules: [{id: makes, match: {tool: create}, action: require_approval}]\n",
  });
});

it("svc.propose_plan, svc.show_plan, svc.approve_plan and svc.deny_plan", async () => {
  verifies("beyond.plan.tools", "beyond.plan.withdraw-surfaces");
  const agent = await g.connect("agent", { headers: { "svc-run-id": "planned" } });
  const operator = await g.connect("approver", { path: "/operator/mcp" });
  const calls = [
    { tool: "create", arguments: { n: 1 } },
    { tool: "create", args: { n: 2 } },
  ];
  const propose = async () =>
    (await call(agent, "svc.propose_plan", { reason: "two of them", calls })).structuredContent;
  const both = [{ tool: "create", args: {}, arguments: {} }];
  expect(await call(agent, "svc.propose_plan", { reason: "r", calls: both })).toMatchObject({
    isError: true,
  });
  verifies("beyond.plan.refused-surfaces");
  const refused = await call(agent, "svc.propose_plan", { reason: "r", calls: [{ tool: "no.such" }] });
  expect(refused.structuredContent).toMatchObject({
    status: "denied",
    decided_by: "engine",
    calls: [{ decision: "block", reasons: ["no manifest is registered for this tool"] }],
  });
  const denied = await propose();
  expect(denied).toMatchObject({ status: "pending", run_id: "planned" });
  const no = await call(operator, "svc.deny_plan", { plan_id: denied.id, note: "not both" });
  expect(no.structuredContent).toMatchObject({ status: "denied", note: "not both" });
  const { id: taken } = await propose();
  const withdrawn = await call(agent, "svc.withdraw", { approval_id: taken });
  expect(withdrawn.structuredContent).toMatchObject({ id: taken, note: "withdrawn" });
  for (const wrong of [{ plan_id: taken }, {}, { plan_id: taken, approval_id: taken }])
    expect(await call(agent, "svc.withdraw", wrong)).toMatchObject({ isError: true });
  const { id: plan_id } = await propose();
  const shown = (await call(operator, "svc.show_plan", { plan_id })).structuredContent;
  expect(shown.cards[1].arguments).toEqual({ n: 2 });
  const approved = await call(operator, "svc.approve_plan", { plan_id, card_hash: shown.card_hash });
  expect(approved.structuredContent).toMatchObject({ status: "approved" });
  for (const n of [1, 2]) expect((await call(agent, "create", { n })).isError, `call ${n}`).toBeFalsy();
  expect((await call(operator, "svc.show_plan", { plan_id })).structuredContent).toMatchObject({
    status: "done",
  });
});
