/** Plans over HTTP: proposed, judged, decided by one vote, and made in their order. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Receiver, startReceiver } from "../golden/notify/support/receivers.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

const MANIFESTS = `
- {tool: crm.get, effect: read, permission: p}
- {tool: crm.create, effect: compensable, permission: p, compensation: {tool: crm.delete, args: {id: $result.id}, residue: [a mail was sent]}}
- {tool: mail.send, effect: irreversible, permission: p}
- {tool: doc.write, effect: reversible, permission: p, before: {tool: crm.get, args: {id: $args.id}}, compensation: {tool: doc.write, args: {id: $args.id, text: $before.text}}}
- {tool: pay.two, effect: idempotent, permission: p}
- {tool: pay.ops, effect: idempotent, permission: p}
`;
const POLICY = `version: 1
rules:
  - {id: creates, match: {tool: crm.create}, action: require_approval, reason: look at it}
  - {id: mails, match: {tool: mail.send}, action: require_approval}
  - {id: pairs, match: {tool: pay.two}, action: require_approval, approval: {quorum: 2}}
  - {id: ops, match: {tool: pay.ops}, action: require_approval, approval: {groups: [ops]}}
  - {id: never, match: {tool: crm.get}, when: [{path: $args.secret, op: exists}], action: deny, reason: not that}
`;
let s: TestServer;
let n = 0;
let hook: Receiver;
afterAll(() => hook?.close());
beforeAll(async () => {
  hook = await startReceiver();
  s = await testServer({
    config: `notifications: {channels: [{name: ops, type: webhook, url: "${hook.url()}", events: [approval_requested]}]}\n`,
    manifests: MANIFESTS,
    policy: POLICY,
    keys: [
      { name: "ann", role: "approver", groups: ["ops"] },
      { name: "bob", role: "approver" },
    ],
  });
});

const create = (id: number) => ({
  tool: "crm.create",
  args: { id, name: `canary-${id}` },
  reason: "make it",
});
const get = (id: number) => ({ tool: "crm.get", args: { id }, reason: "look" });
async function proposed(calls: object[]) {
  const run_id = `p${n++}`;
  await s.call("agent", "POST", "/v1/runs", { run_id, permissions: ["p"] });
  const { status, body, text } = await s.call("agent", "POST", `/v1/runs/${run_id}/plans`, {
    reason: "a tidy week",
    calls,
  });
  expect(status, text).toBe(201);
  const ask = async (call: object) =>
    (await s.call("agent", "POST", `/v1/runs/${run_id}/intents`, call)).body;
  const outcome = (step: number, body: object) =>
    s.call("agent", "POST", `/v1/runs/${run_id}/steps/${step}/outcome`, body);
  const succeed = (step: number, result: object = {}) => outcome(step, { status: "succeeded", result });
  const vote = (key: string, verb = "approve", more: object = {}) =>
    s.call(key, "POST", `/v1/plans/${body.id}/${verb}`, more);
  const now = async () => (await s.call("auditor", "GET", `/v1/plans/${body.id}`)).body;
  const events = async () =>
    (await s.app.core.store.records({ run_id, limit: 500 })).map((line) => JSON.parse(line));
  return { run_id, plan: body, ask, vote, now, events, outcome, succeed };
}

describe("a plan", () => {
  it("reaches approvers like a request, by names alone, and only if somebody has to decide", async () => {
    verifies("beyond.plan.notifies");
    await proposed([get(1)]);
    const { plan, run_id } = await proposed([get(2), create(77), { ...create(78), tool: "pay.ops" }]);
    const told = () => hook.received.map(({ body }) => JSON.parse(body));
    await until(() => told().length > 0, "the notification");
    expect(told()).toMatchObject([
      {
        event: "plan_proposed",
        id: plan.id,
        run_id,
        actor: "agent",
        reason: "a tidy week",
        calls: [
          { tool: "crm.get", arg_names: ["id"], decision: "allow" },
          { tool: "crm.create", arg_names: ["id", "name"], decision: "needs_approval" },
          { tool: "pay.ops", decision: "needs_approval" },
        ],
        approvers: { groups: ["ops"], quorum: 1 },
        expires_ms: plan.expires_ms,
      },
    ]);
    expect(hook.received.map(({ body }) => body).join()).not.toContain("canary");
  });

  it("is judged call by call, decided once, and made in its order", async () => {
    verifies("beyond.plan.propose", "beyond.plan.decide", "beyond.plan.order", "beyond.plan.events");
    const { plan, ask, vote, now, events, succeed } = await proposed([get(1), create(1), create(2)]);
    expect(plan).toMatchObject({
      id: expect.stringMatching(/^pln_[0-9a-f-]{36}$/),
      status: "pending",
      calls: [
        { decision: "allow", reasons: [], risk_score: 0 },
        { decision: "needs_approval", reasons: ["look at it", expect.stringContaining("approval required")] },
        { decision: "needs_approval" },
      ],
      fully_reversible: true,
      irreversible: [],
      residue: ["a mail was sent"],
    });
    expect(await vote("bob", "approve", { note: "fine" })).toMatchObject({
      status: 200,
      body: { status: "approved", decided_by: "bob", note: "fine" },
    });
    expect((await vote("bob")).status).toBe(409);
    // Out of order: an ordinary call that waits for a person, and nothing of the plan changes.
    expect(await ask(create(2))).toMatchObject({ decision: "block" });
    expect(await now()).toMatchObject({ status: "approved", next: 0 });
    expect(await ask(get(1))).toMatchObject({ decision: "allow" });
    expect(await ask({ ...create(1), args: { id: 1, name: "other" } })).toMatchObject({ decision: "block" });
    await succeed(0);
    expect(await ask(create(1))).toMatchObject({ decision: "allow" });
    await succeed(1, { id: 1 });
    expect(await ask(create(2))).toMatchObject({ decision: "allow" });
    expect(await now()).toMatchObject({ status: "done", next: 3 });
    expect(await ask(create(1))).toMatchObject({ decision: "block" });
    const trail = await events();
    expect(
      trail
        .filter(({ event }) => event.startsWith("plan"))
        .map(({ event, actor, detail }) => [event, actor, detail]),
    ).toEqual([
      ["plan_proposed", "agent", `plan ${plan.id}: 3 calls, 2 need approval`],
      ["plan_approved", "bob", `plan ${plan.id}: fine`],
    ]);
    expect(JSON.stringify(trail)).not.toContain("canary");
  });

  it("counts a call whose undo restores the earlier state as one that can be undone", async () => {
    verifies("beyond.before.sandbox");
    const { plan } = await proposed([
      { tool: "doc.write", args: { id: 1, text: "new" }, reason: "say more" },
    ]);
    expect(plan).toMatchObject({ fully_reversible: true, irreversible: [] });
  });

  it("shows cards to those who decide, and holds them to what they saw", async () => {
    verifies("beyond.plan.cards");
    const { plan, vote } = await proposed([create(1), create(2)]);
    const seen = (await s.call("bob", "GET", `/v1/plans/${plan.id}`)).body;
    expect(seen.cards.map((card: { arguments: object }) => card.arguments)).toEqual([
      create(1).args,
      create(2).args,
    ]);
    for (const key of ["auditor", "agent"])
      expect((await s.call(key, "GET", `/v1/plans/${plan.id}`)).text).not.toContain("canary");
    expect((await s.call("bob", "GET", "/v1/plans")).text).not.toContain("canary");
    expect((await vote("bob", "approve", { card_hash: `sha256:${"0".repeat(64)}` })).status).toBe(409);
    const { card_hash } = seen;
    expect((await vote("bob", "approve", { card_hash })).body).toMatchObject({ status: "approved" });
  });

  it("shows a decider no value of a call that others decide, and takes the same hash of everybody", async () => {
    verifies("beyond.plan.cards");
    const { plan, vote } = await proposed([get(3), create(4), { ...create(5), tool: "pay.ops" }]);
    const seenBy = async (key: string) => (await s.call(key, "GET", `/v1/plans/${plan.id}`)).body;
    const [bobs, anns] = [await seenBy("bob"), await seenBy("ann")];
    expect(bobs.cards.map((card: unknown) => card !== null)).toEqual([true, true, false]);
    expect(JSON.stringify(bobs)).not.toContain("canary-5");
    expect(anns.cards[2].arguments).toEqual(create(5).args);
    expect(bobs.card_hash).toBe(anns.card_hash);
    expect((await vote("bob", "approve", { card_hash: bobs.card_hash })).body.status).toBe("pending");
    expect((await vote("ann", "approve", { card_hash: anns.card_hash })).body.status).toBe("approved");
  });

  it("with nothing to decide and a refused call is denied, and is in nobody's way", async () => {
    verifies("beyond.plan.refused-at-once");
    const refused = { ...get(1), args: { secret: 1 } };
    for (const [calls, at] of [
      [[refused], 0],
      [[refused, refused], 0],
      [[get(1), refused], 1],
    ] as const) {
      const { plan, run_id, vote, ask } = await proposed([...calls]);
      expect([plan.status, plan.note, plan.decided_by]).toEqual([
        "denied",
        `call ${at} is refused`,
        "engine",
      ]);
      expect((await vote("bob")).status).toBe(409);
      expect(await ask(get(1))).toMatchObject({ decision: "allow" });
      expect(await s.app.core.store.list("approval_values", { owner: run_id, limit: 9 })).toEqual([]);
    }
  });

  it("counts one vote under each call's own groups, quorum and four eyes", async () => {
    verifies("beyond.plan.vote");
    const { vote, ask, succeed } = await proposed([
      { tool: "pay.two", args: { n: 1 } },
      { tool: "pay.ops", args: { n: 1 } },
    ]);
    expect((await vote("bob")).body).toMatchObject({ status: "pending" });
    expect((await vote("bob")).status).toBe(409);
    expect(await ask({ tool: "pay.two", args: { n: 1 }, reason: "r" })).toMatchObject({ decision: "block" });
    expect((await vote("ann")).body).toMatchObject({ status: "approved" });
    expect(await ask({ tool: "pay.two", args: { n: 1 }, reason: "r" })).toMatchObject({ decision: "allow" });
    await succeed(0);
    expect(await ask({ tool: "pay.ops", args: { n: 1 }, reason: "r" })).toMatchObject({ decision: "allow" });
    const foreign = await proposed([{ tool: "pay.ops", args: {} }]);
    expect((await foreign.vote("bob")).status).toBe(403);
    expect((await foreign.vote("auditor")).status).toBe(403);
  });

  it("ends when a planned call is refused or fails, and when it is denied, withdrawn or late", async () => {
    verifies("beyond.plan.ends", "beyond.plan.withdraw");
    const refused = await proposed([get(1), create(1)]);
    await refused.vote("bob");
    await s.call("admin", "POST", "/v1/halt", { reason: "drill", tool: "crm.get" });
    expect(await refused.ask(get(1))).toMatchObject({ decision: "block" });
    await s.call("admin", "POST", "/v1/resume", {});
    expect(await refused.now()).toMatchObject({ status: "ended" });
    expect(await refused.ask(create(1))).toMatchObject({ decision: "block" });

    const failed = await proposed([create(1), create(2)]);
    await failed.vote("bob");
    expect(await failed.ask(create(1))).toMatchObject({ step: 0 });
    await s.call("agent", "POST", `/v1/runs/${failed.run_id}/steps/0/outcome`, {
      status: "failed",
      error: "no",
    });
    expect(await failed.now()).toMatchObject({ status: "ended" });
    expect(await failed.ask(create(2))).toMatchObject({ decision: "block" });

    const denied = await proposed([create(1)]);
    expect((await denied.vote("bob", "deny", { note: "no" })).body).toMatchObject({ status: "denied" });
    expect(await denied.ask(create(1))).toMatchObject({ decision: "block" });

    const back = await proposed([create(1)]);
    expect((await s.call("agent2", "POST", `/v1/plans/${back.plan.id}/withdraw`, {})).status).toBe(404);
    expect((await s.call("agent", "POST", `/v1/plans/${back.plan.id}/withdraw`, {})).body).toMatchObject({
      status: "expired",
      note: "withdrawn",
    });
    expect((await s.call("agent", "POST", `/v1/plans/${back.plan.id}/withdraw`, {})).status).toBe(409);
    expect((await back.vote("bob")).status).toBe(409);
    expect((await back.events()).at(-1)).toMatchObject({
      event: "approval_expired",
      detail: `plan ${back.plan.id}: withdrawn`,
    });

    const late = await proposed([create(1)]);
    s.env.setNow(s.env.now() + 25 * 3_600_000);
    expect((await late.vote("bob")).status).toBe(409);
    expect(await late.now()).toMatchObject({ status: "expired" });
    expect(await s.app.core.store.list("approval_values", { owner: late.run_id, limit: 100 })).toEqual([]);
  });

  it("covers a call only after every earlier call has ended, and a late failure ends it first", async () => {
    verifies("beyond.plan.waits");
    const { plan, run_id, ask, vote, now, outcome, succeed } = await proposed([
      create(1),
      create(2),
      create(3),
    ]);
    expect((await vote("bob")).status).toBe(200);
    expect(await ask(create(1))).toMatchObject({ decision: "allow", step: 0 });
    // The agent names no dependency, and does not wait for the outcome.
    const early = await ask(create(2));
    expect(early).toEqual({
      decision: "block",
      reasons: [
        "look at it",
        `approval required: plan ${plan.id} approves this call after step 0 has ended; report its outcome, then repeat the call`,
      ],
    });
    expect(await now()).toMatchObject({ status: "approved", next: 1 });
    const { approvals } = (await s.call("auditor", "GET", `/v1/approvals?run_id=${run_id}&status=pending`))
      .body;
    expect(approvals).toEqual([]);
    await succeed(0, { id: 1 });
    expect(await ask(create(2))).toMatchObject({ decision: "allow", step: 1 });
    expect(await ask(create(3))).toMatchObject({ decision: "block" });
    await outcome(1, { status: "failed", error: "late" });
    expect(await now()).toMatchObject({ status: "ended", note: "step 1 is failed" });
    expect((await ask(create(3))).reasons.at(-1)).toMatch(/^approval required: request apr_/);
  });

  it("carries on at once with a call that needs no approval", async () => {
    verifies("beyond.plan.waits");
    const { ask, vote, now, succeed } = await proposed([create(1), get(1), create(2)]);
    expect((await vote("bob")).status).toBe(200);
    expect(await ask(create(1))).toMatchObject({ step: 0 });
    expect(await ask(get(1))).toMatchObject({ decision: "allow", step: 1 });
    expect(await now()).toMatchObject({ next: 2 });
    await succeed(1);
    expect(await ask(create(2))).toMatchObject({ decision: "block" });
    await succeed(0, { id: 1 });
    expect(await ask(create(2))).toMatchObject({ decision: "allow" });
  });

  it("gives its steps the dependencies that it names", async () => {
    verifies("beyond.plan.depends");
    const { run_id, ask, vote, now, succeed } = await proposed([
      get(1),
      create(1),
      { ...create(2), depends_on: [1, 0] },
    ]);
    expect((await vote("bob")).status).toBe(200);
    await ask(get(1));
    await succeed(0);
    await ask(create(1));
    await succeed(1, { id: 1 });
    await ask({ ...create(2), depends_on: [1] });
    const { steps } = (await s.call("agent", "GET", `/v1/runs/${run_id}`)).body;
    expect(steps.map((step: { depends_on: number[] }) => step.depends_on)).toEqual([[], [], [0, 1]]);
    expect(await now()).toMatchObject({ status: "done" });
  });

  it("refuses a call whose named dependency was undone, and ends", async () => {
    verifies("beyond.plan.depends");
    const { run_id, ask, vote, now, succeed } = await proposed([
      create(1),
      { ...create(2), depends_on: [0] },
    ]);
    expect((await vote("bob")).status).toBe(200);
    await ask(create(1));
    await succeed(0, { id: 1 });
    const step = (await s.app.core.store.get("steps", `${run_id}/0`))!;
    expect(step.status).toBe("succeeded");
    await s.app.core.store.transact({
      needs: [["steps", `${run_id}/0`]],
      run: (tx) => tx.put("steps", `${run_id}/0`, { ...step, status: "compensated" }),
    });
    expect((await ask(create(2))).reasons).toContain("step 0, which this call depends on, is not active");
    expect(await now()).toMatchObject({ status: "ended" });
  });

  it("keeps the approved reasons, regardless of the call's", async () => {
    verifies("beyond.card.reason-kept");
    const { run_id, ask, vote, events, succeed } = await proposed([create(1)]);
    expect((await vote("bob")).status).toBe(200);
    await ask({ ...create(1), reason: "something else" });
    await succeed(0, { id: 1 });
    const waits = await ask({ ...create(9), reason: "as the customer asked" });
    const [id] = /apr_[0-9a-f-]{36}/.exec(JSON.stringify(waits))!;
    expect((await s.call("bob", "POST", `/v1/approvals/${id}/approve`, {})).status).toBe(200);
    expect(await ask({ ...create(9), reason: "because I can" })).toMatchObject({
      decision: "allow",
      step: 1,
    });
    const { steps } = (await s.call("agent", "GET", `/v1/runs/${run_id}`)).body;
    expect(steps.map(({ reason }: { reason: string }) => reason)).toEqual([
      "make it",
      "as the customer asked",
    ]);
    expect(JSON.stringify(await events())).not.toMatch(/something else|because I can/);
  });

  it("is refused with a cycle, with too many calls, and for another's run", async () => {
    verifies("beyond.plan.400");
    const run_id = `p${n++}`;
    await s.call("agent", "POST", "/v1/runs", { run_id, permissions: ["p"] });
    const send = (calls: unknown, key = "agent") =>
      s.call(key, "POST", `/v1/runs/${run_id}/plans`, { reason: "r", calls });
    for (const [calls, message] of [
      [[{ ...get(1), depends_on: [0] }], /calls\[0\]\.depends_on: 0 is not an earlier call/],
      [[get(1), { ...get(2), depends_on: [5] }], /no cycles/],
      [Array.from({ length: 101 }, (_, i) => get(i)), /at most 100 calls/],
      [[], /at least one call/],
    ] as const)
      expect(await send(calls)).toMatchObject({
        status: 400,
        body: { error: expect.stringMatching(message) },
      });
    expect((await send([get(1)], "agent2")).status).toBe(404);
    expect((await send([{ ...get(1) }, { ...get(2), depends_on: [0] }])).body).toMatchObject({
      status: "approved",
    });
    const own = (await s.call("agent", "GET", `/v1/plans?run_id=${run_id}`)).body;
    expect(own.plans).toHaveLength(1);
    expect((await s.call("agent2", "GET", "/v1/plans")).body.plans).toEqual([]);
    expect((await s.call("agent2", "GET", `/v1/plans/${own.plans[0].id}`)).status).toBe(404);
  });

  it("are few for each run, whether they are decided or not", async () => {
    verifies("beyond.plan.bounded");
    const run_id = "many-plans";
    await s.call("agent", "POST", "/v1/runs", { run_id, permissions: ["p"] });
    const propose = () =>
      s.call("agent", "POST", `/v1/runs/${run_id}/plans`, { reason: "r", calls: [create(1)] });
    const first = (await propose()).body;
    for (let plans = 1; plans < 20; plans++) expect((await propose()).status).toBe(201);
    const over = await propose();
    expect([over.status, over.body.error]).toEqual([
      409,
      "this run has 20 plans in progress; withdraw one first",
    ]);
    expect((await s.call("ann", "POST", `/v1/plans/${first.id}/deny`, {})).status).toBe(200);
    const free = await propose();
    expect(free.status).toBe(201);
    expect((await s.call("ann", "POST", `/v1/plans/${free.body.id}/approve`, {})).status).toBe(200);
    expect((await propose()).status).toBe(409);
  });

  it("ends where its next call is refused by rules that became stricter, and the call's own request is used", async () => {
    verifies("beyond.plan.refused-ends", "beyond.approval.one-request");
    const stricter = async (text: string) => {
      writeFileSync(join(s.folder, "policy.yaml"), text);
      expect((await s.call("admin", "POST", "/v1/reload", {})).status).toBe(200);
    };
    const plan = await proposed([create(1), create(2)]);
    expect((await plan.vote("ann")).status).toBe(200);
    await stricter(POLICY.replace("reason: look at it", "approval: {quorum: 2}"));
    const waits = await plan.ask(create(1));
    const [id] = /apr_[0-9a-f-]{36}/.exec(JSON.stringify(waits))!;
    expect(waits.decision).toBe("block");
    expect(await plan.now()).toMatchObject({ status: "ended", note: "call 0 was refused" });
    for (const key of ["ann", "bob"])
      expect((await s.call(key, "POST", `/v1/approvals/${id}/approve`, {})).status).toBe(200);
    expect(await plan.ask(create(1))).toMatchObject({ decision: "allow" });
    await stricter(POLICY);
  });

  it("closes the request of a call that waited before the plan covered it", async () => {
    verifies("beyond.approval.one-request");
    const plan = await proposed([create(7)]);
    const [id] = /apr_[0-9a-f-]{36}/.exec(JSON.stringify(await plan.ask(create(7))))!;
    expect((await plan.vote("ann")).status).toBe(200);
    expect(await plan.ask(create(7))).toMatchObject({ decision: "allow" });
    const closed = (await s.call("ann", "GET", `/v1/approvals/${id}`)).body;
    expect([closed.status, closed.note]).toEqual([
      "expired",
      expect.stringMatching(/^covered by request apr_/),
    ]);
    expect(closed.step).toBeNull();
  });
});
