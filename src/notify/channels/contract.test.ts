/**
 * Requirements of every channel, in any format: exact payloads, purity, limits, and nothing that an agent's text could
 * do.
 */
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { APPROVAL, CONFIGS, CONTEXT, EVENTS } from "../../../test/golden/notify/support/samples.ts";
import { SERVICES } from "../../../test/golden/notify/support/services.ts";
import { verifies } from "../../../test/support/verifies.ts";
import { hmacHex } from "../../kernel/hash.ts";
import type { ChannelDelivery, RenderContext } from "../channel.ts";
import { approvalRequested, NOTIFICATION_NAMES, type NotificationEvent } from "../events.ts";
import {
  CHANNEL_TABLE,
  CHANNEL_TYPES,
  type ChannelType,
  channelsSchema,
  readChannels,
  renderFor,
} from "./table.ts";

const golden = (name: string) =>
  fileURLToPath(new URL(`../../../test/golden/notify/${name}.json`, import.meta.url));
const render = (type: ChannelType, event: NotificationEvent, context: RenderContext = CONTEXT) =>
  renderFor(CONFIGS[type], event, { ...context, channel: CONFIGS[type].name ?? type });
/** What travels, with a JSON body opened for reading. */
const opened = (delivery: ChannelDelivery): Record<string, unknown> =>
  delivery.kind === "http"
    ? { url: delivery.url, headers: delivery.headers, body: JSON.parse(delivery.body) as unknown }
    : { ...delivery };
const bodyOf = (delivery: ChannelDelivery): unknown =>
  delivery.kind === "http"
    ? JSON.parse(delivery.body)
    : { subject: delivery.mail.subject, text: delivery.mail.text };
function strings(value: unknown): string[] {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap(strings);
}

const HOSTILE = [
  "@channel @here @everyone <!channel> <!everyone> <!here> <!subteam^S1> <@U123> <#C1>",
  "<https://evil.example|click> [click](https://evil.example) ![x](http://evil.example/x.png) www.evil.example",
  "<a href='https://evil.example'>x</a><img src=x onerror=alert(1)> <at>All</at> </at>",
  "line\r\nBcc: victim@evil.example\r\n\r\nforged body\nApproved by: admin",
  "\u202egnp.exe \u200b\u2066hidden\u2069 \u0000\u0007\u001b[31m \u2028 \u{e0041}",
  '"}],"blocks":[{"type":"image","image_url":"https://evil.example/x.png"}]',
  "*bold* _it_ ~st~ `code` ```block``` # head > quote | table \ud800",
].join(" ");

/** The same event with hostile words wherever an agent has a say. */
function poison(event: NotificationEvent, words: string): NotificationEvent {
  const fixed = new Set(["event", "kind", "severity", "id"]);
  const walk = (value: unknown): unknown => {
    if (typeof value === "string") return words;
    if (Array.isArray(value)) return value.map(walk);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, fixed.has(k) ? v : walk(v)]));
  };
  return walk(event) as NotificationEvent;
}

describe.each(CHANNEL_TYPES)("channel %s", (type) => {
  it.each(NOTIFICATION_NAMES)("renders %s exactly so", async (name) => {
    verifies(
      "ops.channel.chat",
      "ops.channel.team-chat",
      "ops.channel.incident",
      "ops.channel.alert-service",
      "ops.channel.mail",
    );
    const deliveries = render(type, EVENTS[name]);
    await expect(`${JSON.stringify(deliveries.map(opened), null, 2)}\n`).toMatchFileSnapshot(
      golden(`${type}.${name}`),
    );
  });

  it("takes its own configuration back, and no other", () => {
    verifies(
      "contract.notify.slack",
      "contract.notify.teams",
      "contract.notify.pagerduty",
      "contract.notify.opsgenie",
      "contract.notify.smtp",
      "contract.notify.webhook",
      "contract.notify.events",
    );
    const { schema } = CHANNEL_TABLE[type];
    expect(schema.parse(CONFIGS[type])).toEqual(CONFIGS[type]);
    expect(schema.safeParse({ ...CONFIGS[type], chanel: 1 }).success).toBe(false);
    expect(schema.safeParse({ ...CONFIGS[type], events: ["alerts"] }).success).toBe(false);
    expect(schema.safeParse({ ...CONFIGS[type], events: [] }).success).toBe(false);
    expect(schema.safeParse({ type }).success).toBe(false);
    for (const secret of CHANNEL_TABLE[type].secrets) expect(CONFIGS[type]).toHaveProperty(secret);
  });

  it("is pure: the same event gives the same messages and is left as it was", () => {
    for (const name of NOTIFICATION_NAMES) {
      const event = structuredClone(EVENTS[name]);
      expect(render(type, event)).toEqual(render(type, event));
      expect(event).toEqual(EVENTS[name]);
    }
  });

  it("names the tool, the run, the argument names and a link, and never a value", () => {
    verifies("ops.notify.approval", "ops.notify.no-values");
    const withValues = { ...APPROVAL, args: { amount: "CANARY-1" }, note: "CANARY-2", args_hash: "CANARY-3" };
    const sent = JSON.stringify(render(type, approvalRequested(withValues)));
    for (const part of ["payments.refund", "run_01hx-refunds", "amount", "currency", "order_id"]) {
      expect(sent).toContain(part);
    }
    expect(sent).toContain(
      "https://svc.example.com/console/approvals/apr_0b7e2f9c-1111-4222-8333-444455556666",
    );
    expect(sent).not.toContain("CANARY");
  });

  it("has no link where no console address is known", () => {
    const sent = JSON.stringify(
      render(type, EVENTS.approval_requested, { ...CONTEXT, console_url: null }).map(bodyOf),
    );
    expect(sent).not.toContain("/console/");
  });

  it.each(NOTIFICATION_NAMES)("keeps hostile text harmless in %s", (name) => {
    for (const delivery of render(type, poison(EVENTS[name], HOSTILE))) {
      for (const text of strings(bodyOf(delivery))) {
        expect(text).not.toMatch(
          /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/,
        );
        expect(text).not.toMatch(/\ud800(?![\udc00-\udfff])/);
        // A webhook's reader is a program: its strings are JSON strings and nothing else.
        if (type === "webhook") continue;
        expect(text).not.toMatch(/@/);
        expect(text).not.toMatch(/<[!@#a]|<img|<\/?at>/);
        expect(
          text.replaceAll("https://svc.example.com/", "").replace(/^http:\/\/adaptivecards\S+$/, ""),
        ).not.toMatch(/:\/\/|www\./i);
      }
    }
  });

  it("stays inside the service's limits, however long the text", () => {
    const long = `${"&<>@".repeat(2_000)} ${HOSTILE}`;
    const service = SERVICES[type as keyof typeof SERVICES];
    for (const name of NOTIFICATION_NAMES) {
      const event = poison({ ...EVENTS[name] }, long);
      const many =
        name === "approval_requested"
          ? { ...event, arg_names: Array.from({ length: 500 }, (_, i) => `a${i}`) }
          : event;
      for (const delivery of [...render(type, many as NotificationEvent), ...render(type, EVENTS[name])]) {
        if (service !== undefined) service.parse(bodyOf(delivery));
        expect(JSON.stringify(delivery).length).toBeLessThan(60_000);
      }
    }
  });
});

describe("differences of the channels", () => {
  it("slack: buttons carry the approval's id, in plain text blocks, and only where clicks lead back", () => {
    const body = bodyOf(render("slack", EVENTS.approval_requested)[0]!) as {
      blocks: { type: string; elements?: object[] }[];
    };
    const actions = body.blocks.find((block) => block.type === "actions");
    verifies("beyond.chat.card-first");
    expect(actions?.elements).toMatchObject([
      {
        action_id: "svc_open",
        url: `https://svc.example.com/console/approvals/${EVENTS.approval_requested.id}`,
      },
      { action_id: "svc_approve", value: EVENTS.approval_requested.id },
      { action_id: "svc_deny", value: EVENTS.approval_requested.id },
    ]);
    const quiet = JSON.stringify(
      render("slack", EVENTS.approval_requested, { ...CONTEXT, chat_actions: false }),
    );
    expect(quiet).not.toContain("svc_approve");
    const poisoned = JSON.stringify(render("slack", poison(EVENTS.alert, HOSTILE)).map(bodyOf));
    expect(poisoned.match(/"mrkdwn","text":"[^"]*"/g)).toEqual([
      '"mrkdwn","text":"<https://svc.example.com/console/alerts|Open in the console>"',
    ]);
  });

  it("teams: only our own headings are read as Markdown", () => {
    const body = bodyOf(render("teams", poison(EVENTS.alert, "[x](y)"))[0]!) as {
      attachments: { content: { body: { type: string; text?: string }[] } }[];
    };
    const blocks = body.attachments[0]!.content.body.filter((item) => item.type === "TextBlock");
    expect(blocks.map((block) => block.text)).toEqual(["Alert"]);
  });

  it.each(["pagerduty", "opsgenie"] as const)(
    "%s: a resolution closes the incident that the alert opened",
    (type) => {
      verifies("ops.alert-state.incident-closed");
      const keyIn = (delivery: ChannelDelivery) => {
        const body = bodyOf(delivery) as { dedup_key?: string; alias?: string };
        const path = delivery.kind === "http" ? new URL(delivery.url).pathname.split("/").at(-2) : undefined;
        return body.dedup_key ?? body.alias ?? decodeURIComponent(path!);
      };
      const [opening] = render(type, EVENTS.alert);
      const [reminder] = render(type, { ...EVENTS.alert, reminder: true });
      const [closing] = render(type, EVENTS.alert_resolved);
      expect(keyIn(reminder!)).toBe(keyIn(opening!));
      expect(keyIn(closing!)).toBe(keyIn(opening!));
      const elsewhere = render(type, EVENTS.alert, { ...CONTEXT, environment: "staging" })[0]!;
      expect(keyIn(elsewhere)).not.toBe(keyIn(opening!));
      // News leaves nothing open behind it.
      for (const name of ["test", "retention_purged"] as const)
        expect(render(type, EVENTS[name])).toHaveLength(2);
    },
  );

  it("opsgenie and pagerduty: an odd alert id makes a safe key, and two odd ids two keys", () => {
    const close = (id: string) => render("opsgenie", { ...EVENTS.alert_resolved, id })[0]!;
    const [a, b] = [close("x/../y?z=1 ü"), close("x/../y?z=1 ö")];
    expect(a.kind === "http" && new URL(a.url).pathname).toMatch(/^\/v2\/alerts\/[A-Za-z0-9._%-]+\/close$/);
    expect(a).not.toEqual(b);
  });

  it("takes an address without a path for the service's base", () => {
    const at = (config: Parameters<typeof renderFor>[0]) =>
      renderFor(config, EVENTS.alert, CONTEXT)[0] as { url: string };
    expect(at({ ...CONFIGS.pagerduty, url: "http://127.0.0.1:9" }).url).toBe("http://127.0.0.1:9/v2/enqueue");
    expect(at({ ...CONFIGS.opsgenie, url: "https://api.eu.opsgenie.com/" }).url).toBe(
      "https://api.eu.opsgenie.com/v2/alerts",
    );
    const jsm = "https://api.atlassian.com/jsm/ops/integration/v2/alerts";
    expect(at({ ...CONFIGS.opsgenie, url: jsm }).url).toBe(jsm);
  });

  it("webhook: the signature is over the very bytes sent", () => {
    verifies("core.auth.webhook-signature", "ops.channel.webhook");
    const [delivery] = render("webhook", EVENTS.alert);
    if (delivery?.kind !== "http") throw new Error("not http");
    expect(delivery.headers["x-svc-signature"]).toBe(`sha256=${hmacHex("s3cret", delivery.body)}`);
    const { secret: _secret, ...unsigned } = CONFIGS.webhook;
    expect(renderFor(unsigned, EVENTS.alert, CONTEXT)[0]).not.toHaveProperty("headers.x-svc-signature");
  });

  it("smtp: TLS unless it is this machine, and never a password without it", () => {
    const { schema } = CHANNEL_TABLE.smtp;
    const { user: _u, password: _p, ...open } = CONFIGS.smtp;
    const serverOf = (more: object) => {
      const [delivery] = renderFor(schema.parse({ ...open, ...more }), EVENTS.test, CONTEXT);
      return delivery?.kind === "mail" ? delivery.server : undefined;
    };
    expect(serverOf({})).toMatchObject({ port: 587, secure: false, starttls: "required" });
    expect(serverOf({ port: 465 })).toMatchObject({ port: 465, secure: true });
    expect(serverOf({ port: undefined, secure: true })).toMatchObject({ port: 465, secure: true });
    expect(serverOf({ host: "127.0.0.1", port: 2525 })).toMatchObject({
      secure: false,
      starttls: "optional",
    });
    const login = { user: "a", password: "b" };
    expect(schema.safeParse({ ...open, ...login, starttls: "optional" }).success).toBe(false);
    expect(schema.safeParse({ ...open, ...login, starttls: "off", secure: true }).success).toBe(true);
    expect(schema.safeParse({ ...open, ...login, host: "localhost", starttls: "off" }).success).toBe(true);
    expect(schema.safeParse({ ...open, user: "a" }).success).toBe(false);
    for (const to of ["", "a", "a@b\r\nBcc: c@d", "a@b, c@d", "x <a@b> y"]) {
      expect(schema.safeParse({ ...open, to: [to] }).success).toBe(false);
    }
  });
});

describe("the notifications section", () => {
  it("takes all six kinds and names a channel by its type", () => {
    verifies("ops.channel.config");
    const parsed = { channels: readChannels(Object.values(CONFIGS)) };
    expect(parsed.channels.map((channel) => channel.type)).toEqual(Object.keys(CONFIGS));
    expect(readChannels([])).toEqual([]);
    expect(() => readChannels([{ type: "slack" }, { type: "pigeon" }])).toThrow(
      /channels\[0\.url\].*\n.*channels\[1/,
    );
    // The schemas for editors are made from these.
    expect(JSON.stringify(z.toJSONSchema(channelsSchema, { io: "input", unrepresentable: "any" }))).toContain(
      "routing_key",
    );
    expect(readChannels([{ type: "pagerduty", routing_key: "k" }])[0]).toMatchObject({
      url: "https://events.pagerduty.com/v2/enqueue",
    });
  });

  it("refuses two of one name, an unknown kind and an address that is none", () => {
    const slack = { type: "slack", url: "https://hooks.example.com/x" };
    const problem = (channels: object[]) => channelsSchema.safeParse(channels).error?.issues[0]?.message;
    expect(problem([slack, slack])).toBe("two channels are named slack");
    expect(problem([{ type: "pigeon" }])).toBeDefined();
    expect(problem([{ ...slack, url: "ftp://x/" }])).toBe("must be an http or https URL");
    expect(problem([{ ...slack, url: "not a url" }])).toBeDefined();
  });
});
