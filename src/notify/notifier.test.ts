import { afterEach, describe, expect, it } from "vitest";
import { type Answer, type Receiver, startReceiver } from "../../test/golden/notify/support/receivers.ts";
import { APPROVAL, CONFIGS, EVENTS } from "../../test/golden/notify/support/samples.ts";
import { SERVICES } from "../../test/golden/notify/support/services.ts";
import { verifies } from "../../test/support/verifies.ts";
import { createEgress } from "../egress/egress.ts";
import { type RuntimeEnv, systemEnv } from "../kernel/env.ts";
import { hmacHex } from "../kernel/hash.ts";
import { createLogger } from "../telemetry/log.ts";
import { lineSink } from "../telemetry/sink.ts";
import type { ChannelConfig } from "./channels/table.ts";
import { approvalRequested, type NotificationEvent } from "./events.ts";
import { createNotifier, type NotifierDeps, type NotifierSettings } from "./notifier.ts";

const open: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

async function receiver(answer?: Answer): Promise<Receiver> {
  const started = await startReceiver(answer);
  open.push(started.close);
  return started;
}

function setUp(
  channels: ChannelConfig[],
  more: Partial<NotifierSettings> = {},
  parts: Partial<NotifierDeps> = {},
) {
  const egress = createEgress({ block_private: false });
  const lines: string[] = [];
  const sleeps: number[] = [];
  const env: RuntimeEnv = {
    ...systemEnv,
    random: () => 0.5,
    sleep: (ms, signal) => {
      sleeps.push(ms);
      return systemEnv.sleep(0, signal);
    },
  };
  const log = createLogger({}, { redact: (text) => text, sink: lineSink((line) => lines.push(line)) });
  const notifier = createNotifier(
    { channels, console_url: "https://svc.example.com", ...more },
    { egress, env, log, redact: (text) => text, ...parts },
  );
  open.push(() => egress.close());
  const idle = async () => {
    while (notifier.channels().some((channel) => channel.queued > 0)) await systemEnv.sleep(2);
  };
  const warnings = () => lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  return { notifier, idle, warnings, sleeps, env };
}
const hook = (url: string, more: object = {}): ChannelConfig => ({
  type: "webhook",
  name: "hook",
  url,
  ...more,
});

/** How many kinds of notification there are. */
const NOTICES = Object.keys(EVENTS).length;

describe("delivery", () => {
  it("reaches every kind of HTTP channel in the form that its service takes", async () => {
    verifies("ops.notify.alert", "ops.notify.retention-purged");
    const service = await receiver((request, response) => {
      const kind = request.path.split("/")[1] as keyof typeof SERVICES;
      const fits = SERVICES[kind]?.safeParse(JSON.parse(request.body)).success ?? true;
      response.writeHead(fits ? 202 : 400).end();
    });
    const { notifier, idle, warnings } = setUp([
      { ...CONFIGS.slack, url: service.url("/slack") },
      { ...CONFIGS.teams, url: service.url("/teams") },
      { ...CONFIGS.pagerduty, url: service.url("/pagerduty/v2/enqueue") },
      { ...CONFIGS.opsgenie, url: service.url("/opsgenie/v2/alerts") },
      { ...CONFIGS.webhook, url: service.url("/webhook") },
    ]);
    for (const event of Object.values(EVENTS)) notifier.notify(event);
    await idle();
    expect(warnings()).toEqual([]);
    expect(notifier.channels().map(({ ok, failed }) => [ok, failed])).toEqual(Array(5).fill([NOTICES, 0]));
    const signed = service.received.filter((got) => got.path === "/webhook");
    for (const got of signed) {
      expect(got.headers["x-svc-signature"]).toBe(`sha256=${hmacHex("s3cret", got.body)}`);
    }
    expect(service.received.find((got) => got.path.startsWith("/opsgenie"))?.headers["authorization"]).toBe(
      "GenieKey G3N13",
    );
    expect(service.received.some((got) => got.path.endsWith("/close?identifierType=alias"))).toBe(true);
  });

  it("sends a channel only the events it asked for", async () => {
    verifies("contract.notify.default-events", "ops.channel.webhook-events");
    const alerts = await receiver();
    const all = await receiver();
    const { notifier, idle } = setUp([
      hook(alerts.url(), { name: "alerts", events: ["alert", "alert_resolved"] }),
      hook(all.url(), { name: "all" }),
    ]);
    for (const event of Object.values(EVENTS)) notifier.notify(event);
    await idle();
    expect(alerts.received.map((got) => got.headers["x-svc-event"])).toEqual(["alert", "alert_resolved"]);
    expect(all.received).toHaveLength(NOTICES);
  });

  it("sends approval requests to the older approval webhook, next to the channels", async () => {
    verifies("ops.channel.approval-webhook");
    const older = await receiver();
    const channel = await receiver();
    const { notifier, idle } = setUp([hook(channel.url())], { approval_webhook: older.url("/approvals") });
    const withValues = { ...APPROVAL, args: { amount: "CANARY" } };
    notifier.notify(approvalRequested(withValues));
    notifier.notify(EVENTS.alert);
    await idle();
    expect(older.received).toHaveLength(1);
    expect(JSON.parse(older.received[0]!.body)).toMatchObject({
      event: "approval_requested",
      id: APPROVAL.id,
      run_id: APPROVAL.run_id,
      tool: APPROVAL.tool,
      arg_names: APPROVAL.arg_names,
      console_url: `https://svc.example.com/console/approvals/${APPROVAL.id}`,
    });
    expect(older.received[0]!.headers["x-svc-signature"]).toBeUndefined();
    expect([...older.received, ...channel.received].map((got) => got.body).join("")).not.toContain("CANARY");
  });

  it("takes credentials out of every text before it leaves", async () => {
    verifies("contract.values.text-redacted-notification");
    const server = await receiver();
    const redact = (text: string) => text.replaceAll(/AKIA\w+/g, "[REDACTED:aws]");
    const { notifier, idle } = setUp([hook(server.url())], {}, { redact });
    notifier.notify({ ...EVENTS.alert, message: "key AKIA0000 seen", run_id: "AKIA0000", tool: "AKIA0000" });
    await idle();
    expect(server.received[0]!.body).not.toContain("AKIA");
    expect(server.received[0]!.body).toContain("[REDACTED:aws]");
  });
});

describe("retries", () => {
  it("tries three times more, waiting longer each time, and then logs a warning", async () => {
    verifies("contract.notify.retries");
    const server = await receiver((_request, response) => response.writeHead(503).end("busy"));
    const { notifier, idle, warnings, sleeps } = setUp([hook(server.url("/secret-path"))]);
    notifier.notify(EVENTS.alert);
    await idle();
    expect(server.received).toHaveLength(4);
    expect(sleeps).toEqual([500, 1_500, 4_500]);
    expect(new Set(server.received.map((got) => got.headers["x-svc-delivery"])).size).toBe(1);
    expect(warnings()).toMatchObject([
      {
        level: "warn",
        msg: "notification not delivered",
        channel: "hook",
        type: "webhook",
        event: "alert",
        problem: "answered 503",
      },
    ]);
    expect(JSON.stringify(warnings())).not.toContain("secret-path");
    expect(notifier.channels()[0]).toMatchObject({ ok: 0, failed: 1, last_error: "answered 503" });
  });

  it("gets through when the service comes back", async () => {
    const server = await receiver((_request, response, n) => response.writeHead(n < 3 ? 500 : 200).end());
    const { notifier, idle, warnings } = setUp([hook(server.url())]);
    notifier.notify(EVENTS.alert);
    await idle();
    expect([server.received.length, notifier.channels()[0]!.ok, warnings()]).toEqual([3, 1, []]);
  });

  it("waits as long as the service asks, within reason", async () => {
    const asks = ["7", "999999", "soon"];
    const server = await receiver((_request, response, n) =>
      n > 3 ? response.end() : response.writeHead(429, { "retry-after": asks[n - 1]! }).end(),
    );
    const { notifier, idle, sleeps } = setUp([hook(server.url())]);
    notifier.notify(EVENTS.alert);
    await idle();
    expect(sleeps).toEqual([7_000, 60_000, 4_500]);
  });

  it.each([400, 401, 403, 404, 410, 302])(
    "does not repeat a message that was answered with %i",
    async (status) => {
      const server = await receiver((_request, response) => response.writeHead(status).end("no_service"));
      const { notifier, idle, warnings } = setUp([hook(server.url())]);
      notifier.notify(EVENTS.alert);
      await idle();
      expect(server.received).toHaveLength(1);
      expect(warnings()).toMatchObject([{ problem: `answered ${status}: no_service` }]);
    },
  );

  it("keeps the order of a channel and does not let a dead one hold up another", async () => {
    const dead = await receiver((_request, response) => response.destroy());
    const fine = await receiver();
    const { notifier, idle, warnings } = setUp([
      hook(dead.url(), { name: "dead" }),
      hook(fine.url(), { name: "fine" }),
    ]);
    for (const event of Object.values(EVENTS)) notifier.notify(event);
    await idle();
    expect(fine.received.map((got) => got.headers["x-svc-event"])).toEqual(Object.keys(EVENTS));
    expect(dead.received).toHaveLength(4 * NOTICES);
    expect(warnings().every((line) => line["channel"] === "dead")).toBe(true);
  });

  it("warns with the rule when the egress rules refuse, and does not try again", async () => {
    verifies("ops.egress.covers-notifications", "ops.error.egress-names-rule");
    const { notifier, idle, warnings } = setUp([hook("http://169.254.169.254/latest")]);
    notifier.notify(EVENTS.alert);
    await idle();
    expect(warnings()).toMatchObject([
      { level: "warn", problem: expect.stringContaining('egress rule "metadata"') as string },
    ]);
  });
});

describe("a notification never becomes its caller's problem", () => {
  it("with any input", async () => {
    const server = await receiver();
    const { notifier, idle, warnings } = setUp(
      [hook(server.url())],
      {},
      {
        redact: () => {
          throw new Error("no");
        },
      },
    );
    expect(() => notifier.notify(EVENTS.alert)).not.toThrow();
    expect(() => notifier.notify(null as unknown as NotificationEvent)).not.toThrow();
    expect(() => notifier.notify({ event: "unknown" } as unknown as NotificationEvent)).not.toThrow();
    await idle();
    expect(server.received).toEqual([]);
    expect(warnings()).toHaveLength(3);
  });

  it("and its queue is bounded", async () => {
    const { notifier, warnings } = setUp(
      [hook("http://127.0.0.1:9/")],
      {},
      {
        egress: {
          request: () => new Promise(() => undefined),
          checkHost: () => new Promise(() => undefined),
        },
      },
    );
    for (let i = 0; i < 2_500; i++) notifier.notify(EVENTS.alert);
    const [channel] = notifier.channels();
    expect(channel!.queued).toBeLessThanOrEqual(1_001);
    expect(channel!.dropped).toBeGreaterThanOrEqual(1_499);
    expect(warnings()).toHaveLength(1);
    await notifier.drain(0);
    expect(notifier.channels()[0]!.queued).toBeLessThanOrEqual(1);
  });
});

describe("test messages", () => {
  it("go through every channel at once and say how each went", async () => {
    const good = await receiver();
    const bad = await receiver((_request, response) => response.writeHead(403).end("invalid_token"));
    const { notifier } = setUp(
      [hook(good.url(), { name: "good", events: ["alert"] }), { ...CONFIGS.slack, url: bad.url("/x") }],
      { approval_webhook: good.url("/older") },
    );
    expect(await notifier.sendTest("ann")).toEqual([
      { channel: "good", type: "webhook", ok: true, error: null },
      { channel: "ops", type: "slack", ok: false, error: "answered 403: invalid_token" },
    ]);
    expect(good.received.map((got) => got.path)).toEqual(["/"]);
    expect(JSON.parse(good.received[0]!.body)).toMatchObject({ event: "test", by: "ann" });
    expect(await notifier.sendTest("ann", "good")).toHaveLength(1);
    await expect(notifier.sendTest("ann", "none")).rejects.toThrow(/no notification channel is named "none"/);
  });
});

describe("shutdown", () => {
  it("finishes the queue and accepts nothing more", async () => {
    const server = await receiver();
    const { notifier } = setUp([hook(server.url())], {}, { env: systemEnv });
    for (const event of Object.values(EVENTS)) notifier.notify(event);
    await notifier.drain(60_000);
    expect(server.received).toHaveLength(NOTICES);
    notifier.notify(EVENTS.alert);
    expect(notifier.channels()[0]!.queued).toBe(0);
  });

  it("gives up at the deadline and names the messages that were not sent", async () => {
    const server = await receiver(() => undefined);
    const { notifier, warnings } = setUp([hook(server.url())], {}, { env: systemEnv });
    notifier.notify(EVENTS.alert);
    notifier.notify(EVENTS.alert_resolved);
    await notifier.drain(50);
    expect(warnings()).toMatchObject([{ msg: "notifications not sent before the shutdown", left: 2 }]);
  });
});

describe("what the Settings page and doctor see", () => {
  it("is hosts and counts, never a secret", () => {
    const { notifier } = setUp(Object.values(CONFIGS), { approval_webhook: "https://old.example/secret" });
    expect(notifier.channels().map(({ name, host }) => [name, host])).toEqual([
      ["ops", "hooks.slack.example"],
      ["teams", "prod.powerautomate.example"],
      ["pager", "events.pagerduty.com"],
      ["genie", "api.opsgenie.com"],
      ["mail", "mail.example.com:587"],
      ["hook", "hooks.example.com"],
      ["SVC_APPROVAL_WEBHOOK", "old.example"],
    ]);
    expect(JSON.stringify(notifier.channels())).not.toMatch(/secret|s3cret|R0UT1NG|G3N13|p4ss/);
    expect(notifier.destinations()).toHaveLength(7);
    expect(notifier.destinations()[4]).toEqual({
      name: "mail",
      destination: { kind: "host", host: "mail.example.com", port: 587 },
    });
  });
});
