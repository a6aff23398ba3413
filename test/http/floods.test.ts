/** An actor that asks too often: its requests open, people get a digest per window, and an alert is active. */
import { expect, it, onTestFinished } from "vitest";
import { startReceiver } from "../golden/notify/support/receivers.ts";
import { testServer } from "../support/server.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

const MINUTE = 60_000;
const MANIFESTS = `
- {tool: pay.refund, effect: compensable, permission: pay, compensation: {tool: pay.charge, args: {id: $args.id}}}
- {tool: pay.wire, effect: irreversible, permission: pay}
`;
const POLICY = `version: 1
approvals: {flood: {max: 3, window: 10m}}
rules: [{id: ask, match: {tool: "pay.*"}, action: require_approval, reason: ask}]
`;

async function flooded() {
  const hook = await startReceiver();
  onTestFinished(hook.close);
  const s = await testServer({
    manifests: MANIFESTS,
    policy: POLICY,
    config: `notifications: {channels: [{name: ops, type: webhook, url: "${hook.url()}", events: [approval_requested]}]}\n`,
  });
  let n = 0;
  const ask = async (key: string, tool = "pay.refund"): Promise<string> => {
    const run_id = `f${n++}`;
    await s.call(key, "POST", "/v1/runs", { run_id, permissions: ["pay"] });
    const call = { tool, args: { id: n }, reason: "r" };
    const { reasons } = (await s.call(key, "POST", `/v1/runs/${run_id}/intents`, call)).body;
    return /request (apr_\S+)/.exec(reasons.at(-1))![1]!;
  };
  const alerts = async () =>
    (await s.call("auditor", "GET", "/v1/alerts")).body.alerts
      .filter(({ kind }: { kind: string }) => kind === "approval_flood")
      .map(({ id, message }: { id: string; message: string }) => [id, message]);
  const sent = () => hook.received.map(({ body }) => JSON.parse(body));
  const own = () => sent().flatMap(({ event, id }) => (event === "approval_requested" ? [id] : []));
  const digests = () => sent().filter(({ event }) => event === "approval_digest");
  return { s, ask, alerts, own, digests };
}

it("is reported in one digest per window, except for irreversible calls", async () => {
  verifies("beyond.flood.digest", "beyond.flood.alert", "beyond.flood.irreversible-told");
  const { s, ask, alerts, own, digests } = await flooded();
  const first = [await ask("agent"), await ask("agent"), await ask("agent")];
  expect(await alerts()).toEqual([]);
  const past = [await ask("agent"), await ask("agent")];
  const wire = await ask("agent", "pay.wire");
  const other = await ask("agent2");
  expect(await alerts()).toEqual([
    ["approval_flood:agent", "agent opened more than 3 approval requests in 10m"],
  ]);
  await until(() => digests().length === 1, "the digest");
  await until(() => own().includes(other), "the other agent's message");
  expect(own()).toEqual([...first, wire, other]);
  // Sent as soon as there is one, so the second may have come after it.
  expect(digests()[0]).toMatchObject({
    actor: "agent",
    groups: [{ tool: "pay.refund", rule: "ask" }],
  });
  expect(past).toContain(digests()[0].groups[0].id);
  for (const id of past)
    expect((await s.call("approver", "GET", `/v1/approvals/${id}`)).body.status).toBe("pending");

  past.push(await ask("agent"));
  expect((await s.call("approver", "POST", `/v1/approvals/${past[0]}/approve`, {})).status).toBe(200);
  await s.env.advance(9 * MINUTE);
  const last = await ask("agent2");
  await until(() => own().includes(last), "the other agent's message");
  expect(digests()).toHaveLength(1);
  await s.env.advance(MINUTE);
  await until(() => digests().length === 2, "the next window's digest");
  expect(digests()[1]).toMatchObject({ waiting: 2, groups: [{ waiting: 2 }] });
  expect(past.slice(1)).toContain(digests()[1].groups[0].id);
  expect(await alerts()).toEqual([]);
  const again = await ask("agent");
  await until(() => own().includes(again), "a message of its own, once the window is over");
});

it("counts plans as questions, and tells them with the rest", async () => {
  verifies("beyond.flood.plans");
  const { s, ask, alerts, digests } = await flooded();
  await s.call("agent", "POST", "/v1/runs", { run_id: "planned", permissions: ["pay"] });
  const propose = async (tool: string) => {
    const call = { tool, args: { id: tool }, reason: "r" };
    return (await s.call("agent", "POST", "/v1/runs/planned/plans", { reason: "r", calls: [call] })).body.id;
  };
  for (let n = 0; n < 3; n++) await ask("agent");
  const plan = await propose("pay.refund");
  expect(await alerts()).toHaveLength(1);
  await until(() => digests().length === 1, "the digest");
  expect(digests()[0]).toMatchObject({ waiting: 1, groups: [{ tool: "pay.refund", id: plan }] });
  const alone = await propose("pay.wire");
  await until(() => s.app.core.store.get("plans", alone), "the plan");
  const { internal } = (await s.app.core.store.get("plans", alone))!;
  expect(internal.requests[0]!.internal.in_digest).toBeUndefined();
});

it("is what the policy says it is", async () => {
  verifies("beyond.flood.policy");
  const s = await testServer();
  const check = async (flood: string) =>
    (
      await s.call("admin", "POST", "/v1/policy/diff", {
        b: `version: 1\napprovals: {flood: ${flood}}\n`,
      })
    ).status;
  expect(await check("{max: 3, window: 10m}")).toBe(200);
  for (const wrong of ["{max: 3}", "{max: -1, window: 10m}", "{max: 3, window: soon}", "3"])
    expect(await check(wrong), wrong).toBe(400);
});
