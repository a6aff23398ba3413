/** Reference page of the notifications: each event as a webhook receives it, and as the other channels show it. */
import type { RenderContext } from "../../../src/notify/channel.ts";
import { opsgenieChannel } from "../../../src/notify/channels/opsgenie.ts";
import { pagerdutyChannel } from "../../../src/notify/channels/pagerduty.ts";
import { slackChannel } from "../../../src/notify/channels/slack.ts";
import { smtpChannel } from "../../../src/notify/channels/smtp.ts";
import { teamsChannel } from "../../../src/notify/channels/teams.ts";
import { webhookChannel } from "../../../src/notify/channels/webhook.ts";
import {
  NOTIFICATION_EVENTS,
  NOTIFICATION_NAMES,
  type NotificationName,
} from "../../../src/notify/events.ts";
import { describeEvent } from "../../../src/notify/message.ts";
import { CONFIGS, EVENTS } from "../../golden/notify/support/samples.ts";
import { codeSpan, generatedNote, markdownTable } from "./markdown.ts";

const CONTEXT: RenderContext = {
  channel: "ops",
  console_url: "https://svc.example.com",
  environment: "prod",
  now_ms: Date.UTC(2026, 0, 2, 3, 4, 5),
  delivery_id: "6f9619ff-8b86-4d01-b42d-00cf4fc964ff",
  chat_actions: false,
};

/** Meanings of the fields of a webhook body. */
const FIELDS: Readonly<Record<string, string>> = {
  event: "name of the event",
  title: "short text for people",
  at_ms: "time of sending",
  delivery_id: "id of this message, the same on every retry",
  environment: "environment of the service; null without one",
  console_url: "page in the console; null without `console_url`",
  id: "id of the request, the plan or the alert",
  run_id: "id of the run; null without one",
  tool: "name of the tool; null without one",
  actor: "name of the agent",
  tenant: "tenant of the run; null without one",
  arg_names: "names of the arguments, never their values",
  reason: "reason that the agent gave",
  rule: "policy entry that requires the approval; null without one",
  kind: "`call` or `compensation`; for an alert, its [kind](alerts.md)",
  step: "step to undo, or step of the alert; null without one",
  approvers: "groups that decide, and number of people who must approve",
  requested_ms: "time of the request",
  expires_ms: "time of expiry; for a digest, of its first request",
  escalated: "true after an escalation; for a digest, the number of escalated requests",
  calls: "tool, argument names and decision of each call",
  fully_reversible: "true if every call can be undone",
  waiting: "number of pending requests",
  groups: "requests with the same tool and rule; `id` is one of them",
  window_ms: "time until the next digest about this agent",
  severity: "`critical`, `error` or `warning`",
  message: "details for people",
  since_ms: "time at which the alert fired",
  reminder: "true if the alert was sent before",
  resolved_ms: "time at which the alert cleared",
  runs: "ids of the runs",
  archived: "paths of the signed bundles on the server",
  by: "name of the person",
};

const COMMON = ["event", "title", "at_ms", "delivery_id", "environment", "console_url"];

const webhookBody = (name: NotificationName): Record<string, unknown> => {
  const [request] = webhookChannel.render(EVENTS[name], CONFIGS.webhook, CONTEXT);
  if (request?.kind !== "http") throw new Error("a webhook is one HTTP request");
  return JSON.parse(request.body) as Record<string, unknown>;
};

const fieldRows = (names: readonly string[]): string[][] =>
  names.map((name) => {
    if (FIELDS[name] === undefined) throw new Error(`the field ${name} has no meaning in the reference`);
    return [codeSpan(name), FIELDS[name]];
  });

function eventEntry(name: NotificationName): string {
  const body = webhookBody(name);
  const own = Object.keys(body).filter((field) => !COMMON.includes(field));
  const { heading, facts, words } = describeEvent(EVENTS[name], CONTEXT);
  const shown = [...new Set(facts.map(({ label }) => label)), ...(words === null ? [] : [words.label])];
  return `### ${name}

Sent when ${NOTIFICATION_EVENTS[name]}. Chat, email and incident services show "${heading}" with these facts:
${shown.join(", ")}.

${markdownTable(["Field", "Meaning"], fieldRows(own))}
\`\`\`json
${JSON.stringify(body, null, 2)}
\`\`\``;
}

/** The request that a channel sends, without credentials. */
function requestBody(deliveries: readonly { kind: string; body?: string; mail?: object }[]): string {
  const [delivery] = deliveries;
  const shown = delivery?.kind === "http" ? JSON.parse(delivery.body!) : delivery?.mail;
  return `\`\`\`json\n${JSON.stringify(shown, null, 2)}\n\`\`\``;
}

export function notificationsPage(): string {
  return `# Notifications

${generatedNote("src/notify")}

Takeback sends each event to every channel that subscribes to it. Without \`events\`, a channel gets all events. With
\`approval_requested\` it also gets \`approval_digest\` and \`plan_proposed\`. How to configure channels:
[send notifications and alerts](../guides/notifications.md).

A message never contains argument values.

## Delivery

| Case | Behavior |
| - | - |
| Status 2xx | delivered |
| Status 408, 425, 429 or 5xx, or no connection | sent again, up to three times, after \`Retry-After\` or a growing delay |
| Any other status | dropped, with a warning in the log |
| The egress rules refuse the host | dropped, with a warning in the log |

Decisions never wait for a notification. A retry has the same \`delivery_id\`, so your receiver can ignore repeats.

## Verify a webhook

Takeback sends a \`POST\` with a JSON body and these headers.

| Header | Value |
| - | - |
| \`x-svc-event\` | name of the event |
| \`x-svc-delivery\` | the \`delivery_id\` |
| \`x-svc-signature\` | \`sha256=<hex>\`, only if the channel has a \`secret\` |

The signature is the HMAC-SHA-256 of the raw body with your secret as the key. Compute it over the bytes that you
received, before you parse them, and compare in constant time:

\`\`\`js
import { createHmac, timingSafeEqual } from "node:crypto";

export function isSigned(rawBody, header, secret) {
  const expected = Buffer.from(\`sha256=\${createHmac("sha256", secret).update(rawBody).digest("hex")}\`);
  const received = Buffer.from(header ?? "");
  return received.length === expected.length && timingSafeEqual(received, expected);
}
\`\`\`

The signature does not include the time. To reject old messages, check \`at_ms\` and remember the last delivery ids.

## Events

Every webhook body has these fields:

${markdownTable(["Field", "Meaning"], fieldRows(COMMON))}
${NOTIFICATION_NAMES.map(eventEntry).join("\n\n")}

## Other channels

| Channel | Request | Incidents |
| - | - | - |
| \`slack\` | message with blocks, to the webhook URL | none |
| \`teams\` | Adaptive Card, to the workflow URL | none |
| \`pagerduty\` | Events API v2 event | a request, a plan or an alert opens one; \`alert_resolved\` closes it |
| \`opsgenie\` | alert of the Alert API | as for PagerDuty, with an alias |
| \`smtp\` | plain-text email, one thread per incident | none |

All of them contain the same facts. These are their requests for one event.

### Slack

${requestBody(slackChannel.render(EVENTS.retention_purged, CONFIGS.slack, CONTEXT))}

### Microsoft Teams

${requestBody(teamsChannel.render(EVENTS.test, CONFIGS.teams, CONTEXT))}

### PagerDuty

${requestBody(pagerdutyChannel.render(EVENTS.alert, { ...CONFIGS.pagerduty, routing_key: "<routing key>" }, CONTEXT))}

### Opsgenie

${requestBody(opsgenieChannel.render(EVENTS.alert, CONFIGS.opsgenie, CONTEXT))}

### Email

${requestBody(smtpChannel.render(EVENTS.alert, CONFIGS.smtp, CONTEXT))}
`;
}
