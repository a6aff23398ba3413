/** Cards at the gateway: what an operator's agent is shown is what everybody is shown. */
import { beforeAll, expect, it } from "vitest";
import { localPrincipal } from "../../src/cli/operation-client.ts";
import { loadCard } from "../../src/operations/approvals/cards.ts";
import { verifies } from "../support/verifies.ts";
import { call, FAKE_MANIFESTS, fakeUpstream, type GatewayTest, testGateway } from "./support/gateway.ts";

let g: GatewayTest;
beforeAll(async () => {
  g = await testGateway({
    upstreams: [fakeUpstream()],
    manifests: FAKE_MANIFESTS,
    policy:
      "version: 1\nrules: [{id: makes, match: {tool: create}, action: require_approval, reason: look first}]\n",
  });
});

it("svc.show_approval shows the card, and its hash goes with the decision", async () => {
  verifies("beyond.card.same-text");
  const agent = await g.connect("agent", { headers: { "svc-run-id": "shown" } });
  const blocked = await call(agent, "create", { n: "canary-41" });
  const approval_id = /apr_[0-9a-f-]{36}/.exec(JSON.stringify(blocked))![0];
  const operator = await g.connect("approver", { path: "/operator/mcp" });
  const shown = await call(operator, "svc.show_approval", { approval_id });
  const card = (await loadCard(g.service, localPrincipal(), approval_id)).read();
  expect(shown.content[0].text).toBe(`${card.text}\n\nCard      ${card.card_hash}`);
  expect(shown.structuredContent).toMatchObject({ arguments: { n: "canary-41" }, card_hash: card.card_hash });
  const auditor = await g.connect("auditor", { path: "/operator/mcp" });
  expect(await call(auditor, "svc.show_approval", { approval_id })).toMatchObject({ isError: true });
  const stale = await call(operator, "svc.approve_action", {
    approval_id,
    card_hash: `sha256:${"0".repeat(64)}`,
  });
  expect(stale).toMatchObject({ isError: true, content: [{ text: expect.stringContaining("has changed") }] });
  const done = await call(operator, "svc.approve_action", { approval_id, card_hash: card.card_hash });
  expect(done.structuredContent.status).toBe("approved");
  expect((await call(agent, "create", { n: "canary-41" })).isError).toBeFalsy();
  const trail = await g.trail("shown");
  expect(trail.map(({ detail }) => detail)).toContain(`request ${approval_id}; card ${card.card_hash}`);
  expect(JSON.stringify(trail)).not.toContain("canary-41");
});

it("svc.show_approval shows every value in full", async () => {
  verifies("beyond.card.whole-value");
  const agent = await g.connect("agent", { headers: { "svc-run-id": "whole" } });
  const n = `${"x".repeat(30_000)}; rm -rf /srv/data`;
  const approval_id = /apr_[0-9a-f-]{36}/.exec(JSON.stringify(await call(agent, "create", { n })))![0];
  const operator = await g.connect("approver", { path: "/operator/mcp" });
  const shown = await call(operator, "svc.show_approval", { approval_id });
  expect(shown.content[0].text).toContain(n);
  expect(shown.structuredContent.more[0]).toMatchObject({ text: n, size: "30,018 characters" });
});

it("svc.await_approval passes an offer on, and svc.withdraw withdraws a request", async () => {
  verifies("beyond.offer.found", "beyond.withdraw.surfaces");
  const agent = await g.connect("agent", { headers: { "svc-run-id": "offered" } });
  const ask = async (n: number) =>
    /apr_[0-9a-f-]{36}/.exec(JSON.stringify(await call(agent, "create", { n })))?.[0];
  const approval_id = (await ask(1))!;
  const operator = await g.connect("approver", { path: "/operator/mcp" });
  await call(operator, "svc.deny_action", { approval_id, offer: { args: { n: 2 } } });
  const told = (await call(agent, "svc.await_approval", { approval_id, seconds: 0 })).structuredContent;
  expect(told).toMatchObject({ status: "denied", offer: { args: { n: 2 } } });
  expect(told.next).toContain("offer.args");
  expect((await call(agent, "create", { n: 2 })).isError).toBeFalsy();
  const again = (await ask(3))!;
  const taken = await call(agent, "svc.withdraw", { approval_id: again });
  expect(taken.structuredContent).toMatchObject({ status: "expired", note: "withdrawn" });
  expect(await call(agent, "svc.withdraw", { approval_id: again })).toMatchObject({ isError: true });
});
