/** One agent as `GET /v1/actors/{name}` shows it, and alerts in groups. */
import { beforeEach, describe, expect, it } from "vitest";
import { dueAlertMessages } from "../../src/alerts/manager.ts";
import { activeAlerts } from "../../src/operations/background/alerting.ts";
import { undoesAll } from "../support/commands.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

const MANIFESTS = `
- {tool: crm.get, effect: read, permission: crm.read}
- tool: crm.create
  effect: compensable
  permission: crm.write
  compensation: {tool: crm.delete, args: {id: $result.id}}
- {tool: mail.send, effect: irreversible, permission: mail.send}
- {tool: mail.list, effect: read, permission: mail.read}
`;
const POLICY = `
version: 1
rules:
  - {id: mails, match: {tool: mail.send}, action: require_approval}
`;
const HOUR = 3_600_000;
const PERMISSIONS = ["crm.read", "crm.write", "mail.send"];

let s: TestServer;
beforeEach(async () => {
  s = await testServer({
    manifests: MANIFESTS,
    policy: POLICY,
    keys: [
      { name: "bot", role: "agent", max_permissions: ["crm.*", "mail.*"] },
      { name: "acme-agent", role: "agent", tenant: "acme", tenant_only: true },
      { name: "acme-auditor", role: "auditor", tenant: "acme", tenant_only: true },
      { name: "globex-auditor", role: "auditor", tenant: "globex", tenant_only: true },
    ],
  });
});

const actor = async (name: string, key = "auditor") => s.call(key, "GET", `/v1/actors/${name}`);
async function open(run_id: string, key = "bot") {
  await s.call(key, "POST", "/v1/runs", { run_id, permissions: PERMISSIONS });
}
const call = (run_id: string, tool: string, key = "bot") =>
  s.call(key, "POST", `/v1/runs/${run_id}/intents`, { tool, args: { to: "canary-3" }, reason: "r" });
const end = (run_id: string, step: number, status = "succeeded", key = "bot") =>
  s.call(key, "POST", `/v1/runs/${run_id}/steps/${step}/outcome`, { status, result: { id: 1 } });

describe("an actor", () => {
  it("is shown with its permissions, its calls, and its open requests", async () => {
    verifies("beyond.actor.route", "beyond.actor.calls", "beyond.actor.permissions", "beyond.actor.open");
    await open("r");
    for (const [step, tool] of ["crm.get", "crm.create", "crm.create"].entries()) {
      await call("r", tool);
      await end("r", step, step === 2 ? "failed" : "succeeded");
    }
    await call("r", "mail.send");
    await call("r", "no.such");
    await s.call("admin", "POST", "/v1/halt", { reason: "stop", actor: "bot" });
    await s.call("admin", "POST", "/v1/halt", { reason: "other", actor: "other" });
    const granted = await s.call("approver", "POST", "/v1/grants", {
      match: { tool: "mail.send", actor: "bot" },
      rules: ["mails"],
      max_uses: 3,
      expires_at: new Date(s.env.now() + HOUR).toISOString(),
      reason: "the newsletter",
    });
    expect(granted.status, granted.text).toBe(201);
    const drill = { manifest_hash: "m", at_ms: 1, passed: false, problem: "gone", run_id: "d", by: "op" };
    await s.app.core.store.transact({
      run(tx) {
        for (const tool of ["crm.create", "mail.list"]) tx.put("drills", tool, { ...drill, tool });
      },
    });
    const { status, body, text } = await actor("bot");
    expect(status).toBe(200);
    const sum = (name: string) =>
      body.calls.hours.reduce((n: number, hour: Record<string, number>) => n + hour[name]!, 0);
    expect(body.calls.hours).toHaveLength(24);
    expect([sum("allowed"), sum("waiting"), sum("refused"), sum("failed")]).toEqual([3, 1, 1, 1]);
    expect(body.permissions).toEqual({ used: ["crm.read", "crm.write"], unused: ["mail.read", "mail.send"] });
    expect(body.runs).toMatchObject([{ run_id: "r", steps: 3, state: "open" }]);
    expect(body.requests).toMatchObject([{ tool: "mail.send", run_id: "r" }]);
    expect(body.halts).toMatchObject([{ reason: "stop" }]);
    expect(body.standing).toMatchObject([{ run_id: "r", step: 1, tool: "crm.create" }]);
    expect(body.incidents).toMatchObject([{ status: "open" }]);
    expect(body.grants).toMatchObject([{ tool: "mail.send", actor: "bot", uses: 0, max_uses: 3 }]);
    // Only drills of tools that it called.
    expect(body.drills).toEqual([{ tool: "crm.create", at_ms: 1, passed: false, problem: "gone" }]);
    expect(body.alerts).toEqual([]);
    expect(text).not.toContain("canary-3");
  });

  it("is shown with its alerts in groups, and with its undos", async () => {
    verifies("beyond.actor.calls", "beyond.actor.open");
    s = await testServer({
      manifests: MANIFESTS,
      config: `rollback: {compensator_cmd: "${undoesAll()}"}\n`,
      keys: [{ name: "bot", role: "agent" }],
    });
    await open("undone");
    await call("undone", "crm.create");
    await end("undone", 0);
    await s.call("operator", "POST", "/v1/runs/undone/rollback", { confirm: true });
    await until(async () => (await actor("bot")).body.calls.undone === 1, "the undo");
    await open("lost");
    for (let i = 0; i < 2; i++) await call("lost", "crm.create");
    await s.env.advance(HOUR + 1_000);
    const { body } = await actor("bot");
    expect([body.calls.undone, body.calls.undo_failed]).toEqual([1, 0]);
    expect(body.undos.at(-1)).toMatchObject({ undone: 1, failed: 0 });
    expect(body.alerts).toMatchObject([
      { kind: "unresolved_outcome", message: expect.stringContaining("(and 1 more like it)") },
    ]);
  });

  it("is a 404 without a run, a key or an incident, and an auditor's", async () => {
    verifies("beyond.actor.route");
    expect((await actor("nobody")).status).toBe(404);
    expect((await actor("bot")).status).toBe(200);
    expect((await actor("bot", "bot")).status).toBe(403);
    expect((await actor(encodeURIComponent("a/../b ‮"))).status).toBe(404);
  });

  it("is shown within a tenant, and not there for another", async () => {
    verifies("beyond.actor.tenant");
    await open("ours", "acme-agent");
    await call("ours", "crm.get", "acme-agent");
    await open("theirs");
    expect((await actor("acme-agent", "acme-auditor")).body.runs).toMatchObject([{ run_id: "ours" }]);
    expect((await actor("acme-agent", "globex-auditor")).status).toBe(404);
    expect((await actor("bot", "acme-auditor")).status).toBe(404);
  });
});

describe("an actor's halts", () => {
  const halted = async (scope: object, name = "bot") => {
    await s.call("admin", "POST", "/v1/halt", { reason: "stop", ...scope });
    const { body } = await actor(name);
    await s.call("admin", "POST", "/v1/resume", {});
    return [body.halted, body.halts.length];
  };

  it("are those that can block its calls, and say whether they block all of them", async () => {
    verifies("beyond.actor.halted");
    await open("r");
    await open("ours", "acme-agent");
    expect(await halted({})).toEqual(["yes", 1]);
    expect(await halted({ actor: "b*" })).toEqual(["yes", 1]);
    expect(await halted({ tool: "mail.*" })).toEqual(["in_part", 1]);
    expect(await halted({ actor: "bot", environment: "prod" })).toEqual(["in_part", 1]);
    expect(await halted({ tenant: "acme" })).toEqual(["no", 0]);
    expect(await halted({ tenant: "*", tool: "*" })).toEqual(["yes", 1]);
    expect(await halted({ tenant: "acme" }, "acme-agent")).toEqual(["yes", 1]);
    expect(await halted({ tenant: "globex" }, "acme-agent")).toEqual(["no", 0]);
    expect(await halted({ actor: "other" })).toEqual(["no", 0]);
  });
});

describe("groups of alerts", () => {
  async function unknownOutcomes(n: number, first = 0) {
    for (let i = first; i < first + n; i++) {
      await open(`u${i}`);
      await call(`u${i}`, "crm.create");
    }
    await s.env.advance(HOUR + 1_000);
  }
  const due = async () =>
    (await dueAlertMessages(s.app.core, await activeAlerts(s.app), HOUR)).map(({ what, alert }) => [
      what,
      alert.id,
      alert.message,
    ]);

  it("have one entry per condition with its group", async () => {
    verifies("beyond.alerts.group");
    await unknownOutcomes(3);
    const { alerts } = (await s.call("auditor", "GET", "/v1/alerts")).body;
    expect(alerts).toHaveLength(3);
    for (const one of alerts) {
      expect(one.group).toBe("unresolved_outcome:bot:crm.create");
      expect(one).not.toHaveProperty("actor");
    }
  });

  it("are sent once with a count, under one id until they are resolved", async () => {
    verifies("beyond.alerts.group-notified");
    await unknownOutcomes(3);
    const [raised, ...rest] = await due();
    expect([raised![0], rest]).toEqual(["raised", []]);
    expect(raised![2]).toContain("(and 2 more like it)");
    await unknownOutcomes(1, 3);
    const [reminder] = await due();
    expect(reminder!.slice(0, 2)).toEqual(["reminder", raised![1]]);
    expect(reminder![2]).toContain("(and 3 more like it)");
    for (let i = 0; i < 4; i++) await end(`u${i}`, 0, "failed");
    expect((await due()).map(([what, id]) => [what, id])).toEqual([["resolved", raised![1]]]);
  });

  it("an entry of an older version is taken over, not sent again", async () => {
    verifies("beyond.alerts.group-notified");
    await unknownOutcomes(2);
    const [first] = await activeAlerts(s.app);
    const { group: _, actor: __, ...older } = first!;
    const sent = { [older.id]: { alert: older, sent_ms: s.env.now() } };
    await s.app.core.store.transact({ run: (tx) => tx.put("meta", "alerts_sent", sent) });
    expect(await due()).toEqual([]);
  });

  it("a further break-glass approval is sent at once", async () => {
    verifies("beyond.alerts.group-critical");
    const breakGlass = async (run_id: string) => {
      await open(run_id);
      const { reasons } = (await call(run_id, "mail.send")).body;
      const id = /apr_[0-9a-f-]{36}/.exec(reasons.at(-1))![0];
      await s.call("admin", "POST", `/v1/approvals/${id}/break-glass`, { reason: "site is down" });
    };
    await breakGlass("b1");
    expect((await due()).map(([what]) => what)).toEqual(["raised"]);
    await breakGlass("b2");
    const [again] = await due();
    expect([again![0], again![2]]).toEqual(["raised", expect.stringContaining("(and 1 more like it)")]);
    expect(await due()).toEqual([]);
  });
});
