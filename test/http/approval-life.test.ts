/** The states of a request over its whole life, delegations, and what an allow rule cannot lift. */
import { beforeAll, describe, expect, it } from "vitest";
import { expireOrEscalateUnit } from "../../src/govern/approvals/decide-request.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

const POLICY = `
version: 1
risk: {}
rules:
  - id: mails
    match: {tool: mail.send}
    action: require_approval
    reason: a person must see it
    approval: {groups: [ops], ttl: 4h, escalate_after: 30m, escalate_to: [leads]}
  - {id: writes, match: {tool: crm.create}, action: require_approval, reason: ask}
`;
const MINUTE = 60_000;
let s: TestServer;
let n = 0;
beforeAll(async () => {
  s = await testServer({
    policy: POLICY,
    keys: [
      { name: "ops", role: "approver", groups: ["ops"] },
      { name: "lead", role: "approver", groups: ["leads"] },
      { name: "helper", role: "auditor" },
    ],
  });
});
async function pending(tool = "mail.send") {
  const run = `a${n++}`;
  await s.call("agent", "POST", "/v1/runs", {
    run_id: run,
    permissions: ["mail.send", "crm.write", "crm.read"],
  });
  const ask = async () =>
    (await s.call("agent", "POST", `/v1/runs/${run}/intents`, { tool, args: { to: run }, reason: "r" })).body;
  const id = /apr_[0-9a-f-]{36}/.exec(JSON.stringify(await ask()))![0];
  const read = async () => (await s.call("auditor", "GET", `/v1/approvals/${id}`)).body;
  const decide = (key: string, verb: string, body: object = {}) =>
    s.call(key, "POST", `/v1/approvals/${id}/${verb}`, body);
  return { run, id, ask, read, decide };
}
const events = async (run: string) =>
  (
    await s.call("auditor", "GET", `/v1/runs/${run}/export`, undefined, { accept: "application/json" })
  ).body.records.map(({ event, actor }: Record<string, string>) => `${event} ${actor}`);

describe("a request", () => {
  it("is pending, escalated, approved, denied, expired or consumed", async () => {
    verifies(
      "contract.approval.statuses",
      "contract.approval.escalated-open",
      "contract.event.approval-escalated",
      "contract.policy.approval-escalation",
    );
    const used = await pending();
    expect((await used.read()).status).toBe("pending");
    await s.env.advance(30 * MINUTE);
    await s.app.core.store.transact(expireOrEscalateUnit(s.app.core, used.id));
    expect(await used.read()).toMatchObject({ status: "escalated", escalated_ms: s.env.now() });
    expect((await used.ask()).reasons.at(-1)).toContain(used.id);
    expect((await used.decide("lead", "approve")).body.status).toBe("approved");
    expect((await used.ask()).decision).toBe("allow");
    expect((await used.read()).status).toBe("consumed");
    expect(await events(used.run)).toEqual([
      "blocked agent",
      "approval_escalated engine",
      "blocked agent",
      "approved lead",
      "approved engine",
      "intended agent",
    ]);
    const denied = await pending();
    await denied.decide("ops", "deny");
    expect((await denied.read()).status).toBe("denied");
    const late = await pending();
    await s.env.advance(4 * 60 * MINUTE);
    expect(await late.decide("ops", "approve")).toMatchObject({
      status: 409,
      body: { error: expect.stringContaining("expired") },
    });
    expect((await late.read()).status).toBe("expired");
    for (const status of ["pending", "escalated", "approved", "denied", "expired", "consumed"]) {
      const { approvals } = (await s.call("auditor", "GET", `/v1/approvals?status=${status}`)).body;
      expect(approvals.every((one: { status: string }) => one.status === status)).toBe(true);
    }
  });

  it("keeps each vote with who, what, why, when and for whom", async () => {
    verifies("contract.approval.votes", "contract.policy.approval-groups", "core.approval-state.approve");
    const { decide } = await pending();
    expect((await decide("lead", "approve")).status).toBe(403);
    expect((await decide("admin", "approve")).status).toBe(403);
    const { body } = await decide("ops", "approve", { note: "seen" });
    expect(body.votes).toEqual([
      { by: "ops", decision: "approve", note: "seen", at_ms: s.env.now(), for: null },
    ]);
  });

  it("that nobody knows is a 404", async () => {
    verifies("core.error.404-approval");
    const none = "/v1/approvals/apr_00000000-0000-4000-8000-000000000000";
    expect((await s.call("auditor", "GET", none)).status).toBe(404);
    for (const verb of ["approve", "deny", "break-glass"]) {
      expect(
        (
          await s.call(
            "admin",
            "POST",
            `${none}/${verb}`,
            verb === "break-glass" ? { reason: "long enough" } : {},
          )
        ).status,
      ).toBe(404);
    }
    expect((await s.call("auditor", "GET", "/v1/approvals/nonsense")).status).toBe(404);
  });

  it("leaves a step whose risk score is reported", async () => {
    verifies("core.step.risk-score");
    const { run, decide, ask } = await pending("crm.create");
    await decide("approver", "approve");
    await ask();
    const { steps } = (await s.call("agent", "GET", `/v1/runs/${run}`)).body;
    expect(steps[0].risk_score).toBeGreaterThan(0);
    expect(steps[0].risk_score).toBeLessThanOrEqual(100);
  });
});

describe("a delegation", () => {
  it("delegates its groups, for the tools it names, and is on the ledger", async () => {
    verifies(
      "contract.delegation.fields",
      "contract.delegation.tools",
      "contract.delegation.lends",
      "contract.event.delegated",
    );
    const expires_at = new Date(s.env.now() + 60 * MINUTE).toISOString();
    const lend = async (key: string, tools: string) =>
      (
        await s.call(key, "POST", "/v1/delegations", {
          to: "helper",
          tools,
          expires_at,
          reason: "on holiday",
        })
      ).body;
    const mails = await lend("ops", "mail.*");
    expect(mails).toEqual({
      id: expect.stringMatching(/^dlg_[0-9a-f-]{36}$/),
      from: "ops",
      to: "helper",
      tools: "mail.*",
      reason: "on holiday",
      created_ms: s.env.now(),
      expires_ms: s.env.now() + 60 * MINUTE,
      revoked_ms: null,
      from_principal: { kind: "key", issuer: null, name: "ops" },
      to_principal: { kind: "key", issuer: null, name: "helper" },
      in_force: true,
    });
    const other = await pending("crm.create");
    expect((await other.decide("helper", "approve")).status).toBe(403);
    const mail = await pending();
    expect((await mail.decide("helper", "approve")).body).toMatchObject({
      status: "approved",
      decided_by: "helper",
      votes: [{ by: "helper", for: "ops" }],
    });
    await s.env.advance(60 * MINUTE);
    expect((await (await pending()).decide("helper", "approve")).status).toBe(403);
    await s.call("ops", "DELETE", `/v1/delegations/${mails.id}`);
    const { records } = (await s.call("auditor", "GET", "/v1/search/records?q=dlg_")).body;
    expect(records.map(({ event, actor }: Record<string, string>) => [event, actor])).toEqual([
      ["delegation_revoked", "ops"],
      ["delegated", "ops"],
    ]);
  });
});

describe("an allow rule", () => {
  it("lifts no denial, no content check, no limit and no halt", async () => {
    verifies("contract.combine.allow-lifts-nothing-else");
    const server = await testServer({
      policy: `version: 1\ncontent: {secrets: deny}\nlimits: [{id: few, match: {tool: crm.get}, max: 1, per: run, window: 1h, reason: few}]\nrules:\n  - {id: yes, action: allow}\n  - {id: no, match: {tool: mail.send}, action: deny, reason: never}\n`,
    });
    await server.call("agent", "POST", "/v1/runs", {
      run_id: "r",
      permissions: ["crm.read", "crm.write", "mail.send"],
    });
    const ask = async (tool: string, args: unknown = {}) =>
      (await server.call("agent", "POST", "/v1/runs/r/intents", { tool, args, reason: "r" })).body;
    expect(await ask("crm.get")).toMatchObject({ decision: "allow" });
    expect(await ask("crm.get")).toEqual({ decision: "block", reasons: ["few"] });
    expect(await ask("mail.send")).toEqual({ decision: "block", reasons: ["never"] });
    const [reason] = (await ask("crm.create", { password: "hunter2000" })).reasons;
    expect(reason).toMatch(/^content check \(secrets\): /);
    await server.call("admin", "POST", "/v1/halt", { reason: "all" });
    expect(await ask("crm.create")).toEqual({ decision: "block", reasons: ["kill switch: all"] });
  });
});

describe("chat actions", () => {
  it.each([
    ["nothing", ""],
    ["the secret alone", "chat: {signing_secret: s}\n"],
    ["the users alone", "chat: {users: {U1: approver}}\n"],
  ])("are not there with %s", async (_name, config) => {
    verifies("core.route.chat-404-secret", "core.route.chat-404-users");
    const server = await testServer({ config });
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    expect(
      await server.call(null, "POST", "/integrations/chat/actions", "payload=%7B%7D", headers),
    ).toMatchObject({
      status: 404,
      body: { error: expect.stringContaining("SVC_CHAT_SIGNING_SECRET and SVC_CHAT_USERS") },
    });
  });
});
