/** Plans with a call that would be refused: nobody is asked, and the answer says why. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect } from "../../src/index.ts";
import { loggedIn } from "../console/support/client.ts";
import { consoleServer } from "../console/support/server.ts";
import { type Receiver, startReceiver } from "../golden/notify/support/receivers.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

const MANIFESTS = `
- {tool: crm.get, effect: read, permission: p}
- {tool: crm.create, effect: irreversible, permission: p}
- {tool: crm.close, effect: irreversible, permission: p, requires: [crm.get]}
- {tool: crm.once, effect: irreversible, permission: p, idempotency: [$args.id]}
- {tool: mail.send, effect: irreversible, permission: mail.send}
- {tool: few.calls, effect: irreversible, permission: p}
- {tool: half.done, effect: irreversible, permission: p, lifecycle: draft}
`;
const POLICY = `version: 1
content: {secrets: deny}
limits: [{id: few, match: {tool: few.calls}, max: 1, per: run, window: 1h}]
rules:
  - {id: creates, match: {tool: "crm.{create,close,once}"}, action: require_approval}
  - {id: never, match: {tool: crm.get}, when: [{path: $args.all, op: exists}], action: deny, reason: one at a time}
`;
let s: TestServer;
let hook: Receiver;
let n = 0;
beforeAll(async () => {
  hook = await startReceiver();
  s = await testServer({
    manifests: MANIFESTS,
    policy: POLICY,
    config: `notifications: {channels: [{name: ops, type: webhook, url: "${hook.url()}"}]}\nquotas: [{match: {actor: agent}, open_approvals: 1}]\n`,
    keys: [{ name: "capped", role: "agent", max_permissions: ["p"] }],
  });
});
afterAll(() => hook.close());

const CREATE = { tool: "crm.create", args: { name: "canary" } };
async function opened(more: object = {}, key = "agent") {
  const run_id = `r${n++}`;
  await s.call(key, "POST", "/v1/runs", { run_id, permissions: ["p"], ...more });
  const propose = async (...calls: object[]) =>
    (await s.call(key, "POST", `/v1/runs/${run_id}/plans`, { reason: "tidy", calls })).body;
  const made = async (call: object) => {
    const { body } = await s.call(key, "POST", `/v1/runs/${run_id}/intents`, { reason: "r", ...call });
    await s.call(key, "POST", `/v1/runs/${run_id}/steps/${body.step}/outcome`, {
      status: "succeeded",
      result: {},
    });
  };
  const events = async () =>
    (await s.app.core.store.records({ run_id, limit: 500 })).map((line) => JSON.parse(line));
  return { run_id, propose, made, events };
}

describe("a plan with a call that would be refused", () => {
  it("is denied by the engine, asks nobody and leaves nothing open", async () => {
    verifies("beyond.plan.refused-denied", "beyond.plan.refused-records");
    const { run_id, propose, events } = await opened();
    const plan = await propose(CREATE, { tool: "mail.send", args: { to: "canary" } });
    const scope = "permission mail.send is not in the run's scope";
    expect(plan).toMatchObject({
      status: "denied",
      decided_by: "engine",
      note: "call 1 is refused",
      calls: [
        { decision: "needs_approval", approval_id: null },
        { decision: "block", reasons: [scope], approval_id: null },
      ],
    });
    const trail = (await events()).filter(({ event }) => event.startsWith("plan"));
    expect(trail.map(({ event, actor, detail }) => [event, actor, detail])).toEqual([
      ["plan_proposed", "agent", `plan ${plan.id}: 2 calls, 1 need approval`],
      ["plan_denied", "engine", `plan ${plan.id}: call 1 is refused: ${scope}`],
    ]);
    expect(JSON.stringify(trail)).not.toContain("canary");
    for (const verb of ["approve", "deny"])
      expect((await s.call("approver", "POST", `/v1/plans/${plan.id}/${verb}`, {})).status).toBe(409);
    expect((await s.call("auditor", "GET", "/v1/plans?status=pending")).body.plans).toEqual([]);
    expect((await s.call("auditor", "GET", "/v1/approvals")).body.approvals).toEqual([]);
    expect(await s.app.core.store.list("approval_values", { owner: run_id, limit: 9 })).toEqual([]);
    expect(hook.received).toEqual([]);
    // The quota of open requests and the run's open plans don't count it.
    expect((await s.call("agent", "GET", `/v1/plans/${plan.id}`)).body.status).toBe("denied");
    const good = await propose(CREATE);
    expect(good.status).toBe("pending");
    await s.call("agent", "POST", `/v1/plans/${good.id}/withdraw`, {});
  });

  it.each([
    ["a deny rule", { tool: "crm.get", args: { all: 1 } }, "one at a time"],
    ["a tool without a manifest", { tool: "crm.gte", args: {} }, "no manifest is registered"],
    ["a draft", { tool: "half.done", args: {} }, "is a draft"],
    ["a content check", { tool: "crm.get", args: { k: "AKIAIOSFODNN7EXAMPLF" } }, "secret"],
    ["a prerequisite that nothing satisfies", { tool: "crm.close", args: {} }, "prerequisite crm.get"],
  ])("is denied for %s, with the reason on the call", async (_name, call, reason) => {
    verifies("beyond.plan.refused-denied");
    const plan = await (await opened()).propose(CREATE, call);
    expect(plan.status).toBe("denied");
    expect(plan.calls[1].reasons.join()).toContain(reason);
  });

  it("is judged on the run as it is: its scope, its key, what it did, halts and counters", async () => {
    verifies("beyond.plan.refused-live");
    const withdrawn = async (plan: { id: string; status: string }) => {
      await s.call("agent", "POST", `/v1/plans/${plan.id}/withdraw`, {});
      return plan.status;
    };
    const run = await opened();
    expect(
      await withdrawn(await run.propose({ tool: "crm.get", args: {} }, { tool: "crm.close", args: {} })),
    ).toBe("pending");
    await run.made({ tool: "crm.get", args: {} });
    expect(await withdrawn(await run.propose({ tool: "crm.close", args: {} }))).toBe("pending");
    await run.made({ tool: "few.calls", args: {} });
    expect((await run.propose({ tool: "few.calls", args: {} })).status).toBe("denied");
    const twice = [1, 1].map((id) => ({ tool: "crm.once", args: { id } }));
    expect((await run.propose(...twice)).calls[1].reasons.join()).toContain("idempotency");
    await s.call("admin", "POST", "/v1/halt", { reason: "stop it", actor: "agent" });
    const halted = await run.propose(CREATE);
    expect([halted.status, halted.calls[0].reasons[0]]).toEqual(["denied", "kill switch: stop it"]);
    await s.call("admin", "POST", "/v1/resume", {});
    const capped = await opened({ permissions: ["p"] }, "capped");
    const keys = JSON.parse(readFileSync(join(s.folder, "keys.json"), "utf8"));
    const changed = keys.map((one: { name: string }) =>
      one.name === "capped" ? { ...one, max_permissions: ["other"] } : one,
    );
    writeFileSync(join(s.folder, "keys.json"), JSON.stringify(changed), { mode: 0o600 });
    await s.call("admin", "POST", "/v1/reload", {});
    expect((await capped.propose(CREATE)).calls[0].reasons.join()).toContain("max_permissions");
  });

  it("is judged as enforce would in every mode, while the calls themselves stay free", async () => {
    verifies("beyond.plan.refused-modes");
    for (const mode of ["observe", "advise"]) {
      const { run_id, propose } = await opened({ mode });
      const call = { tool: "mail.send", args: {} };
      expect((await propose(call)).status).toBe("denied");
      const ask = { ...call, reason: "r" };
      const { body } = await s.call("agent", "POST", `/v1/runs/${run_id}/intents`, ask);
      expect(body.decision).toBe("would_block");
    }
  });
});

it("the library and the console show a plan that nobody was asked about", async () => {
  verifies("beyond.plan.refused-surfaces");
  const server = await consoleServer();
  const library = await connect({ url: server.url, key: "agent" });
  const run = await library.run({ permissions: ["crm.read"] });
  const plan = await run.propose([{ tool: "pay.refund", args: { amount: 700 } }], { reason: "pay it back" });
  expect(plan).toMatchObject({ status: "denied", decided_by: "engine" });
  expect(plan.calls[0]!.reasons.join()).toContain("is not in the run's scope");
  const approver = await loggedIn(server.url, "approver");
  expect((await approver.get("/console/plans")).text).toContain("denied");
  const page = (await approver.get(`/console/plans/${plan.id}`)).text;
  expect(page).toContain("the plan was denied automatically");
  expect(page).toContain("is not in the run&#39;s scope");
  expect(page).not.toContain("Approve the plan");
});
