/** Flows, plans, grants and undone calls in the period report, the oversight report and the alerts. */
import { beforeAll, expect, it } from "vitest";
import { type TestServer, testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

const MANIFESTS = `
- {tool: list.read, effect: read, permission: p, risk: {source: list}}
- {tool: mail.send, effect: irreversible, permission: p, risk: {sink: outside}}
- {tool: crm.sync, effect: idempotent, permission: p, idempotency: $args.n}
`;
const POLICY = `
version: 1
rules:
  - {id: ask, match: {tool: crm.sync}, when: [{path: $args.n, op: gt, value: 5}], action: require_approval, reason: ask first}
flows:
  - {id: leaving, after: {source: list}, then: {sink: outside}, action: deny, reason: the list stays}
`;
let s: TestServer;

const intent = async (tool: string, args: object = {}) =>
  (await s.call("agent", "POST", "/v1/runs/r/intents", { tool, args, reason: "why" })).text;
const requestIn = (text: string) => /apr_[0-9a-f-]{36}/.exec(text)![0];
const propose = async (n: number): Promise<string> =>
  (
    await s.call("agent", "POST", "/v1/runs/r/plans", {
      reason: "plan",
      calls: [{ tool: "crm.sync", args: { n }, reason: "one" }],
    })
  ).body.id;
const alerts = async () => (await s.call("auditor", "GET", "/v1/alerts")).body.alerts;

beforeAll(async () => {
  s = await testServer({ manifests: MANIFESTS, policy: POLICY });
  await s.call("agent", "POST", "/v1/runs", { run_id: "r", permissions: ["p"] });
  await intent("list.read");
  await intent("mail.send");
  await intent("mail.send", { to: "b" });
  await intent("crm.sync", { n: 1 });
  await intent("crm.sync", { n: 1 });
  await intent("crm.sync", { n: "six" });
  const withdrawn = requestIn(await intent("crm.sync", { n: 7 }));
  await s.call("agent", "POST", `/v1/approvals/${withdrawn}/withdraw`);
  await s.call("agent", "POST", `/v1/plans/${await propose(8)}/withdraw`);
});

it("counts a reason with semicolons as one, and calls that follow different steps together", async () => {
  verifies("ops.period.blocked");
  const { body } = await s.call("auditor", "GET", "/v1/report?since=1d&format=json");
  const reasons = body.blocked_reasons.map(({ reason, count }: { reason: string; count: number }) => [
    reason,
    count,
  ]);
  expect(Object.fromEntries(reasons)).toEqual({
    "the list stays": 2,
    "approval required: request is pending an operator decision; retry after it is approved": 2,
    "ask first": 1,
    "ask first; could not compare $args.n": 1,
    "idempotency: the same logical call is already active as step 1 of this run (repeat it with other values, or after that step has failed or is undone)": 1,
  });
});

it("counts no plan among the requests that expired", async () => {
  verifies("ops.period.approvals", "beyond.oversight.figures");
  for (const path of ["/v1/report?", "/v1/report/oversight?"]) {
    const { body } = await s.call("auditor", "GET", `${path}since=1d&format=json`);
    expect((body.requests ?? body.approvals).expired, path).toBe(1);
  }
});

it("alerts of no request that ended before its time was over", async () => {
  verifies("contract.alert.approval-expired");
  const covered = { tool: "crm.sync", args: { n: 9 } };
  await intent(covered.tool, covered.args);
  // Approved ahead, so the open request for the same call is not needed any more.
  expect((await s.call("approver", "POST", "/v1/runs/r/approvals", covered)).status).toBe(201);
  await propose(10);
  const contained = { actor: "agent", reason: "it went mad", confirm: true, no_rollback: true };
  expect((await s.call("admin", "POST", "/v1/contain", contained)).status).toBe(202);
  await expect
    .poll(async () => (await s.call("auditor", "GET", "/v1/plans")).body.plans[0].status)
    .toBe("expired");
  const ended = await s.call("auditor", "GET", "/v1/search/records?event=approval_expired");
  expect(ended.body.records.length).toBeGreaterThanOrEqual(4);
  expect((await alerts()).map(({ kind }: { kind: string }) => kind)).not.toContain("approval_expired");
});
