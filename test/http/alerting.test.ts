/** Alerts and notifications of a running service: thresholds, recipients, and that they never change a decision. */
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { SETTINGS_TABLE } from "../../src/config/settings.ts";
import { sendAlerts } from "../../src/operations/background/alerting.ts";
import { type Receiver, startReceiver } from "../golden/notify/support/receivers.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

const MINUTE = 60_000;
const MANIFESTS = `
- tool: crm.create
  effect: compensable
  permission: p
  compensation: {tool: crm.delete, args: {id: $result.id}}
  verification: {tool: crm.get, args: {id: $result.id}, expect: {deleted: true}, retries: 0}
- {tool: mail.send, effect: irreversible, permission: p}
`;
const POLICY =
  "version: 1\nrules: [{id: ask, match: {tool: mail.send}, action: require_approval, reason: ask}]\n";

async function receiver(): Promise<Receiver> {
  const started = await startReceiver();
  onTestFinished(started.close);
  return started;
}
async function serve(config = ""): Promise<TestServer> {
  const s = await testServer({ manifests: MANIFESTS, policy: POLICY, config });
  await s.call("agent", "POST", "/v1/runs", { run_id: "r", permissions: ["p"] });
  return s;
}
const ask = (s: TestServer, tool: string) =>
  s.call("agent", "POST", "/v1/runs/r/intents", { tool, args: { to: "canary" }, reason: "r" });
const kinds = async (s: TestServer): Promise<string[]> =>
  (await s.call("auditor", "GET", "/v1/alerts")).body.alerts.map(({ kind }: { kind: string }) => kind);

describe("alerts", () => {
  it("are raised by ten blocked calls, twenty refused credentials, and a read-back that failed", async () => {
    verifies(
      "contract.alert.denial-spike",
      "contract.alert.auth-failures",
      "contract.alert.verification-failed",
      "contract.readings.alert-threshold",
      "ops.alerts.compensation-failed",
    );
    const s = await serve();
    for (let i = 0; i < 9; i++) await ask(s, "nope");
    expect(await kinds(s)).toEqual([]);
    await ask(s, "nope");
    expect(await kinds(s)).toEqual(["denial_spike"]);
    await s.env.advance(16 * MINUTE);
    expect(await kinds(s)).toEqual([]);

    const refused = async (n: number) => {
      for (let i = 0; i < n; i++) await s.call("wrong", "GET", "/v1/runs");
    };
    await refused(19);
    expect(await kinds(s)).toEqual([]);
    await refused(1);
    expect(await kinds(s)).toEqual(["auth_failures"]);
    await s.env.advance(17 * MINUTE);
    expect(await kinds(s)).toEqual([]);

    await ask(s, "crm.create");
    const post = (path: string, body: object, key = "operator") =>
      s.call(key, "POST", `/v1/runs/r/steps/0/${path}`, body);
    await post("outcome", { status: "succeeded", result: { id: 1 } }, "agent");
    const undo = async (observed: object) => {
      await post("compensation", {});
      return (await post("compensation/outcome", { status: "succeeded", observed })).body.status;
    };
    verifies("beyond.first.alert-time");
    await s.env.advance(5 * MINUTE);
    const failed_ms = s.env.now();
    expect(await undo({ deleted: false })).toBe("compensation_failed");
    const { alerts } = (await s.call("auditor", "GET", "/v1/alerts")).body;
    const since = (kind: string) => alerts.find((one: { kind: string }) => one.kind === kind).since_ms;
    expect(since("compensation_failed")).toBeGreaterThanOrEqual(failed_ms);
    expect((await kinds(s)).sort()).toEqual(["compensation_failed", "verification_failed"]);
    await s.env.advance(24 * 60 * MINUTE);
    expect(await kinds(s)).toEqual(["compensation_failed"]);
    expect(await undo({ deleted: true })).toBe("compensated");
    expect(await kinds(s)).toEqual([]);
  });

  it("are sent where there is a channel, every ten seconds, and end with a closing message", async () => {
    verifies(
      "ops.alerts.manager-needs-channel",
      "ops.alerts.resolved-message",
      "ops.alerts.denial-spike-everywhere",
      "contract.readings.alert-interval",
    );
    const hook = await receiver();
    const timers = vi.spyOn(globalThis, "setTimeout");
    const s = await serve(
      `alerts: {denial_spike: 2}\nnotifications: {channels: [{name: ops, type: slack, url: "${hook.url("/s")}"}]}\n`,
    );
    expect(timers.mock.calls.map(([, ms]) => ms)).toContain(10_000);
    timers.mockRestore();
    await ask(s, "nope");
    await sendAlerts(s.app);
    expect([await kinds(s), hook.received.length]).toEqual([[], 0]);
    await ask(s, "nope");
    await sendAlerts(s.app);
    await until(() => hook.received.length === 1, "the first alert");
    expect(await kinds(s)).toEqual(["denial_spike"]);
    expect(JSON.parse(hook.received[0]!.body).text).toMatch(/Many calls blocked/);
    await s.env.advance(16 * MINUTE);
    await sendAlerts(s.app);
    await until(() => hook.received.length === 2, "the second alert");
    expect(JSON.parse(hook.received[1]!.body).text).toMatch(/Resolved: Many calls blocked/);

    const quiet = await serve("alerts: {denial_spike: 1}\n");
    await ask(quiet, "nope");
    await sendAlerts(quiet.app);
    expect(await kinds(quiet)).toEqual(["denial_spike"]);
    expect(await quiet.app.core.store.get("meta", "alerts_sent")).toBeUndefined();
  });

  it("have thresholds and a reminder that can be set, and nothing else", () => {
    verifies("ops.alerts.not-configurable");
    expect(Object.keys(SETTINGS_TABLE.alerts.rows)).toEqual(["remind", "denial_spike", "undo_closing"]);
  });
});

describe("a notification", () => {
  it("of a request is sent, without a value, while the call is answered", async () => {
    verifies("core.approval-state.notification", "contract.notify.never-holds-up");
    const silent = await startReceiver(() => undefined);
    onTestFinished(silent.close);
    const hook = await receiver();
    const s = await serve(
      `notifications: {channels: [{name: slow, type: webhook, url: "${silent.url()}"}, {name: ops, type: webhook, url: "${hook.url()}"}]}\n`,
    );
    const { reasons } = (await ask(s, "mail.send")).body;
    await until(() => hook.received.length === 1 && silent.received.length === 1, "both alerts");
    const sent = JSON.parse(hook.received[0]!.body);
    expect(sent).toMatchObject({
      event: "approval_requested",
      tool: "mail.send",
      run_id: "r",
      arg_names: ["to"],
    });
    expect(reasons.at(-1)).toContain(sent.id);
    expect(hook.received[0]!.body).not.toContain("canary");
  });

  it.each([
    [
      "a dead channel",
      'notifications: {channels: [{name: dead, type: webhook, url: "http://127.0.0.1:1/"}]}',
      ["notification not delivered", "cannot reach 127.0.0.1:1"],
    ],
    [
      "a channel that the egress rules refuse",
      'notifications: {channels: [{name: meta, type: webhook, url: "http://169.254.169.254/"}]}',
      ["notification not delivered", 'egress rule \\"metadata\\"'],
    ],
    [
      "a refused approval webhook",
      'notifications: {approval_webhook: "http://127.0.0.1:1/"}\negress: {allow: []}',
      ["notification not delivered", "SVC_APPROVAL_WEBHOOK", 'egress rule \\"allow\\"'],
    ],
    [
      "a collector that is away",
      'otlp: {endpoint: "http://127.0.0.1:1"}',
      ["trace export failed", "cannot reach 127.0.0.1:1"],
    ],
  ])("through %s is a warning and no more", async (_name, config, warning) => {
    verifies(
      "ops.notify.dead-channel",
      "ops.error.side-channels-notification",
      "ops.egress.covers-approval-webhook",
      "ops.egress.refusal-is-warning",
    );
    const s = await serve(`${config}\n`);
    const plain = await serve();
    const answers = async (server: TestServer) => {
      const asked = (await ask(server, "mail.send")).body;
      const made = (await ask(server, "crm.create")).body;
      return JSON.stringify([asked, made]).replaceAll(/apr_[0-9a-f-]{36}/g, "apr");
    };
    expect(await answers(s)).toBe(await answers(plain));
    const warned = () =>
      s.logged.some((line) => ['"level":"warn"', ...warning].every((part) => line.includes(part)));
    await until(async () => {
      await s.env.advance(5_000);
      return warned();
    }, "the warning");
    expect((await ask(s, "crm.create")).body).toMatchObject({ decision: "allow" });
  });
});
