/**
 * Generic webhook: the event's fields as JSON, signed with HMAC-SHA-256 over the exact bytes of the body. Strings are
 * unchanged except for control and invisible characters, which are removed.
 */
import * as z from "zod";
import { hmacHex } from "../../kernel/hash.ts";
import {
  type ChannelDefinition,
  commonChannelFields,
  httpUrl,
  postJson,
  type RenderContext,
} from "../channel.ts";
import type { NotificationEvent } from "../events.ts";
import { describeEvent } from "../message.ts";
import { plainLine } from "../safe-text.ts";

const schema = z.strictObject({
  type: z.literal("webhook"),
  ...commonChannelFields,
  url: httpUrl,
  secret: z.string().min(1).optional(),
});

const TEXT_CHARS = 4_000;
const LIST_ENTRIES = 1_000;

function cleaned(value: unknown): unknown {
  if (typeof value === "string") return plainLine(value, TEXT_CHARS);
  if (Array.isArray(value)) return value.slice(0, LIST_ENTRIES).map(cleaned);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, cleaned(member)]));
}

function payload(event: NotificationEvent, context: RenderContext): Record<string, unknown> {
  const message = describeEvent(event, context);
  return {
    ...(cleaned(event) as NotificationEvent),
    title: plainLine(message.title),
    at_ms: context.now_ms,
    delivery_id: context.delivery_id,
    environment: context.environment,
    console_url: message.link?.url ?? null,
  };
}

export const webhookChannel: ChannelDefinition<z.infer<typeof schema>> = {
  schema,
  secrets: ["url", "secret"],
  destination: (config) => ({ kind: "url", url: config.url }),
  render(event, config, context) {
    const request = postJson(config.url, payload(event, context), {
      "x-svc-event": event.event,
      "x-svc-delivery": context.delivery_id,
    });
    if (config.secret === undefined) return [request];
    const signature = `sha256=${hmacHex(config.secret, request.body)}`;
    return [{ ...request, headers: { ...request.headers, "x-svc-signature": signature } }];
  },
};
