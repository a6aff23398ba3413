/**
 * Opsgenie Alert API v2: creates an alert under an alias and closes it by that alias. The URL can be another region's,
 * or that of Jira Service Management, which has the same API.
 */
import * as z from "zod";
import {
  type ChannelDefinition,
  commonChannelFields,
  type HttpDelivery,
  httpUrl,
  postJson,
  withPath,
} from "../channel.ts";
import type { AlertSeverity } from "../events.ts";
import { describeEvent, messageHeadline, type NotificationMessage } from "../message.ts";
import { defuseTags } from "../safe-text.ts";

const DEFAULT_URL = "https://api.opsgenie.com/v2/alerts";

const schema = z.strictObject({
  type: z.literal("opsgenie"),
  ...commonChannelFields,
  api_key: z.string().min(1),
  url: httpUrl.default(DEFAULT_URL),
});
type Config = z.infer<typeof schema>;

const PRIORITIES: Record<AlertSeverity, string> = { critical: "P1", error: "P2", warning: "P3", info: "P5" };

const target = (config: Config) => withPath(config.url, "/v2/alerts");
const authorization = (config: Config) => ({ authorization: `GenieKey ${config.api_key}` });

function create(message: NotificationMessage, config: Config, eventName: string): HttpDelivery {
  const facts = message.facts.map(({ label, value }) => [label, defuseTags(value)] as const);
  const description = [
    defuseTags(message.title, 500),
    ...(message.words === null ? [] : [`${message.words.label}: ${defuseTags(message.words.value, 1_000)}`]),
    ...facts.map(([label, value]) => `${label}: ${value}`),
    ...(message.link === null ? [] : [`${message.link.text}: ${message.link.url}`]),
  ];
  const body = {
    message: defuseTags(messageHeadline(message), 130),
    alias: message.incident.key,
    description: description.join("\n"),
    tags: ["svc", eventName],
    details: Object.fromEntries(facts.map(([label, value]) => [label.toLowerCase(), value])),
    entity: "svc",
    source: "svc",
    priority: PRIORITIES[message.severity],
  };
  return postJson(target(config), body, authorization(config));
}

function close(message: NotificationMessage, config: Config): HttpDelivery {
  const url = new URL(target(config));
  url.pathname = `${url.pathname.replace(/(?<!\/)\/+$/, "")}/${encodeURIComponent(message.incident.key)}/close`;
  url.searchParams.set("identifierType", "alias");
  const body = { user: "svc", source: "svc", note: defuseTags(message.title, 500) };
  return postJson(url.href, body, authorization(config));
}

export const opsgenieChannel: ChannelDefinition<Config> = {
  schema,
  secrets: ["api_key"],
  destination: (config) => ({ kind: "url", url: target(config) }),
  render(event, config, context) {
    const message = describeEvent(event, context);
    const { change } = message.incident;
    if (change === "opens") return [create(message, config, event.event)];
    if (change === "closes") return [close(message, config)];
    return [create(message, config, event.event), close(message, config)];
  },
};
