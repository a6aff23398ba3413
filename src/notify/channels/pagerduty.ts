/**
 * PagerDuty Events API v2. An alert triggers an incident under a key, and its resolution resolves that incident. A
 * message without a lasting condition is resolved at once, so that no incident stays open.
 */
import * as z from "zod";
import {
  type ChannelDefinition,
  commonChannelFields,
  httpUrl,
  postJson,
  type RenderContext,
  withPath,
} from "../channel.ts";
import { describeEvent, messageHeadline, type NotificationMessage } from "../message.ts";
import { defuseTags } from "../safe-text.ts";

const DEFAULT_URL = "https://events.pagerduty.com/v2/enqueue";

const schema = z.strictObject({
  type: z.literal("pagerduty"),
  ...commonChannelFields,
  routing_key: z.string().min(1),
  url: httpUrl.default(DEFAULT_URL),
});
type Config = z.infer<typeof schema>;

const target = (config: Config) => withPath(config.url, "/v2/enqueue");

function trigger(
  message: NotificationMessage,
  routing_key: string,
  eventName: string,
  context: RenderContext,
): object {
  const details = message.facts.map(({ label, value }) => [label.toLowerCase(), defuseTags(value)]);
  if (message.words !== null)
    details.push([message.words.label.toLowerCase(), defuseTags(message.words.value, 1_000)]);
  return {
    routing_key,
    event_action: "trigger",
    dedup_key: message.incident.key,
    client: "svc",
    ...(message.link === null ? {} : { client_url: message.link.url }),
    links: message.link === null ? [] : [{ href: message.link.url, text: message.link.text }],
    payload: {
      summary: defuseTags(messageHeadline(message), 1_000),
      source: context.environment === null ? "svc" : defuseTags(`svc ${context.environment}`),
      severity: message.severity,
      timestamp: new Date(context.now_ms).toISOString(),
      class: eventName,
      custom_details: Object.fromEntries(details) as Record<string, string>,
    },
  };
}

export const pagerdutyChannel: ChannelDefinition<Config> = {
  schema,
  secrets: ["routing_key"],
  destination: (config) => ({ kind: "url", url: target(config) }),
  render(event, config, context) {
    const message = describeEvent(event, context);
    const { key, change } = message.incident;
    const { routing_key } = config;
    const opening = postJson(target(config), trigger(message, routing_key, event.event, context));
    const closing = postJson(target(config), { routing_key, event_action: "resolve", dedup_key: key });
    if (change === "opens") return [opening];
    return change === "closes" ? [closing] : [opening, closing];
  },
};
