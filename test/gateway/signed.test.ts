/** Signed approvals at the operator endpoint: the tool names the page to sign at. */
import { expect, it } from "vitest";
import { verifies } from "../support/verifies.ts";
import { call, fakeUpstream, testGateway } from "./support/gateway.ts";

it("answers with the page to sign at", async () => {
  verifies("beyond.signed.operator");
  const g = await testGateway({
    upstreams: [fakeUpstream()],
    policy: "version: 1\nrules:\n  - {id: all, action: require_approval, approval: {signed: true}}\n",
    config: { console_url: "https://svc.example.com", ledger_origin: "example.com/ledger" },
  });
  const agent = await g.connect("agent");
  const asked = await call(agent, "create", { name: "x" });
  const id = /apr_[0-9a-f-]{36}/.exec(JSON.stringify(asked))![0];
  const operator = await g.connect("approver", { path: "/operator/mcp" });
  const said = await call(operator, "svc.approve_action", { approval_id: id });
  expect(JSON.stringify(said)).toContain(
    `a passkey is required: https://svc.example.com/console/approvals/${id}`,
  );
});
