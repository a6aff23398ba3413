import { beforeEach, describe, expect, it } from "vitest";
import { evaluateAlerts } from "../../src/alerts/evaluate.ts";
import { dueAlertMessages } from "../../src/alerts/manager.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

let s: TestServer;
beforeEach(async () => {
  s = await testServer({
    policy:
      "version: 1\nrules:\n  - {id: m, match: {tool: mail.send}, action: require_approval, reason: ask}\n",
    config: "alerts: {denial_spike: 3}\n",
  });
  await s.call("agent", "POST", "/v1/runs", { run_id: "r", permissions: ["crm.read", "mail.send"] });
  await s.call("agent", "POST", "/v1/runs", { run_id: "o", permissions: [], mode: "observe" });
});
const ask = (tool: string, run = "r") =>
  s.call("agent", "POST", `/v1/runs/${run}/intents`, { tool, args: {}, reason: "r" });
const alerts = async () => (await s.call("auditor", "GET", "/v1/alerts")).body.alerts;
const kinds = async () => (await alerts()).map((alert: { kind: string }) => alert.kind);
const MINUTE = 60_000;

describe("alerts", () => {
  it("raise a denial spike at its threshold, for fifteen minutes", async () => {
    verifies(
      "contract.http.alerts",
      "ops.alert.titled",
      "ops.alert.blocked-message",
      "ops.alerts.route-live",
      "ops.alerts.denial-spike",
      "ops.alerts.window",
      "core.route.alerts",
    );
    await ask("nope");
    await ask("nope");
    expect(await kinds()).toEqual([]);
    await ask("nope");
    expect(await alerts()).toEqual([
      {
        id: "denial_spike",
        group: "denial_spike",
        kind: "denial_spike",
        severity: "warning",
        title: "Many calls blocked",
        message: "3 calls blocked: agent (3)",
        since_ms: s.env.now(),
        run_id: null,
        step: null,
        tool: null,
      },
    ]);
    await s.env.advance(16 * MINUTE);
    expect(await kinds()).toEqual([]);
  });

  it("count refused calls alone for a denial spike, and name the agents", async () => {
    verifies("ops.alert.blocked-refused", "ops.alert.blocked-agents");
    for (let i = 0; i < 6; i++) expect((await ask("mail.send")).body.decision).toBe("block");
    expect(await kinds()).toEqual([]);
    await s.call("agent2", "POST", "/v1/runs", { run_id: "second", permissions: [] });
    await s.call("agent2", "POST", "/v1/runs/second/intents", { tool: "crm.get", args: {}, reason: "r" });
    await ask("nope");
    expect(await kinds()).toEqual([]);
    await ask("crm.create");
    expect(await alerts()).toMatchObject([
      { kind: "denial_spike", message: "3 calls blocked: agent (2), agent2 (1)" },
    ]);
  });

  it("warn of a closing undo as late as the setting and a tenth of its time both allow", async () => {
    verifies("beyond.horizon.alert-late");
    const HOUR = 60 * MINUTE;
    const tool = (name: string, until: string) =>
      `- {tool: ${name}, effect: compensable, permission: p, compensation: {tool: x.undo, args: {}, until: ${until}}}\n`;
    const own = await testServer({ manifests: tool("pay.day", "24h") + tool("pay.month", "30d") });
    await own.call("agent", "POST", "/v1/runs", { run_id: "c", permissions: ["p"] });
    const closing = async () =>
      (await own.call("auditor", "GET", "/v1/alerts")).body.alerts
        .filter(({ kind }: { kind: string }) => kind === "undo_closing")
        .map(({ tool, since_ms }: { tool: string; since_ms: number }) => [tool, since_ms]);
    const start = own.env.now();
    for (const [step, name] of ["pay.day", "pay.month"].entries()) {
      await own.call("agent", "POST", "/v1/runs/c/intents", { tool: name, args: {}, reason: "r" });
      const done = { status: "succeeded", result: {} };
      await own.call("agent", "POST", `/v1/runs/c/steps/${step}/outcome`, done);
    }
    expect(await closing()).toEqual([]);
    await own.env.advance(start + 21.6 * HOUR - own.env.now() - 1);
    expect(await closing()).toEqual([]);
    await own.env.advance(1);
    expect(await closing()).toEqual([["pay.day", start + 21.6 * HOUR]]);
    await own.env.advance(start + 29 * 24 * HOUR - own.env.now() - 1);
    expect(await closing()).toEqual([]);
    await own.env.advance(1);
    expect(await closing()).toEqual([["pay.month", start + 29 * 24 * HOUR]]);
  });

  it("report unknown outcomes after an hour, and halts, until they are fixed", async () => {
    verifies("ops.alert.unknown-outcome-message", "ops.alerts.unresolved-outcome", "ops.alerts.halted");
    await ask("crm.get");
    await s.env.advance(60 * MINUTE);
    expect(await kinds()).toEqual([]);
    await s.env.advance(1);
    expect(await alerts()).toMatchObject([
      {
        kind: "unresolved_outcome",
        message: "Outcome still unknown: crm.get in r",
        run_id: "r",
        step: 0,
        tool: "crm.get",
      },
    ]);
    await s.call("operator", "POST", "/v1/runs/r/steps/0/resolve", { status: "failed", note: "looked" });
    await s.call("admin", "POST", "/v1/halt", { reason: "drill" });
    expect(await alerts()).toMatchObject([{ kind: "halted", severity: "critical", message: "drill" }]);
    await s.call("admin", "POST", "/v1/resume", {});
    expect(await kinds()).toEqual([]);
  });

  it("tell of break-glass, expired requests, calls without a manifest, refused credentials", async () => {
    verifies(
      "contract.http.break-glass-alert",
      "contract.alert.approval-expired",
      "contract.alert.unmanifested-call",
    );
    const { reasons } = (await ask("mail.send")).body;
    const id = /apr_[0-9a-f-]{36}/.exec(reasons.at(-1))![0];
    await s.call("admin", "POST", `/v1/approvals/${id}/break-glass`, { reason: "site is down" });
    await ask("x.y", "o");
    expect((await kinds()).sort()).toEqual(["break_glass", "unmanifested_call"]);
    await s.env.advance(25 * 60 * MINUTE);
    await ask("mail.send");
    expect(await kinds()).toContain("approval_expired");
  });

  it("are sent once over all processes, reminded of, and resolved", async () => {
    verifies(
      "ops.alert-state.raised-once",
      "ops.alert-state.reminded",
      "ops.alert-state.resolved",
      "ops.alerts.state-in-store",
    );
    const { core } = s.app;
    const due = async () =>
      (await dueAlertMessages(core, await evaluateAlerts(core, s.app.settings.alerts), 60 * MINUTE)).map(
        (m) => [m.what, m.alert.id],
      );
    await s.call("admin", "POST", "/v1/halt", { reason: "drill" });
    const [one, two] = await Promise.all([due(), due()]);
    expect([...one, ...two]).toEqual([["raised", "halted"]]);
    expect(await due()).toEqual([]);
    await s.env.advance(60 * MINUTE);
    expect(await due()).toEqual([["reminder", "halted"]]);
    expect(await due()).toEqual([]);
    await s.call("admin", "POST", "/v1/resume", {});
    expect(await due()).toEqual([["resolved", "halted"]]);
    expect(await due()).toEqual([]);
  });
});
