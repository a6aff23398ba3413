/**
 * PagerDuty Events API v2. An alert triggers an incident under a key and its resolution resolves the
 * same one; what is news and not a condition is resolved at once, so that nothing stays open for it.
 */
import * as z from "zod";
import { type Channel, common, httpUrl, postJson, type RenderContext, withPath } from "../channel.ts";
import { describeEvent, headline, type Message } from "../message.ts";
import { tagless } from "../text.ts";

const DEFAULT_URL = "https://events.pagerduty.com/v2/enqueue";

const schema = z.strictObject({
  type: z.literal("pagerduty"),
  ...common,
  routing_key: z.string().min(1),
  url: httpUrl.default(DEFAULT_URL),
});
type Config = z.infer<typeof schema>;

const target = (config: Config) => withPath(config.url, "/v2/enqueue");

function trigger(message: Message, routing_key: string, eventName: string, context: RenderContext): object {
  const details = message.facts.map(({ label, value }) => [label.toLowerCase(), tagless(value)]);
  if (message.words !== null)
    details.push([message.words.label.toLowerCase(), tagless(message.words.value, 1_000)]);
  return {
    routing_key,
    event_action: "trigger",
    dedup_key: message.incident.key,
    client: "svc",
    ...(message.link === null ? {} : { client_url: message.link.url }),
    links: message.link === null ? [] : [{ href: message.link.url, text: message.link.text }],
    payload: {
      summary: tagless(headline(message), 1_000),
      source: context.environment === null ? "svc" : tagless(`svc ${context.environment}`),
      severity: message.severity,
      timestamp: new Date(context.now_ms).toISOString(),
      class: eventName,
      custom_details: Object.fromEntries(details) as Record<string, string>,
    },
  };
}

export const pagerduty: Channel<Config> = {
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
