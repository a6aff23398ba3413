/**
 * Interface of a notification channel: a configuration schema, and a pure `render` from an event to the service's
 * requests. Sending, waiting and retrying are shared by all channels.
 */
import * as z from "zod";
import type { NotificationEvent } from "./events.ts";
import { NOTIFICATION_NAMES } from "./events.ts";

export interface RenderContext {
  /** Configured name of the channel. */
  readonly channel: string;
  readonly console_url: string | null;
  readonly environment: string | null;
  readonly now_ms: number;
  /** The same on every retry, so that a receiver can detect repeats. */
  readonly delivery_id: string;
  /** Whether a click on a chat button reaches this server. */
  readonly chat_actions: boolean;
}

export interface HttpDelivery {
  readonly kind: "http";
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface MailServer {
  readonly host: string;
  readonly port: number;
  /** TLS from the first byte. Otherwise `starttls` applies. */
  readonly secure: boolean;
  readonly starttls: "required" | "optional" | "off";
  readonly user: string | undefined;
  readonly password: string | undefined;
}

export interface MailMessage {
  readonly from: string;
  readonly to: readonly string[];
  readonly subject: string;
  readonly text: string;
  readonly message_id: string;
  readonly references: string | null;
  readonly headers: Readonly<Record<string, string>>;
}

export interface MailDelivery {
  readonly kind: "mail";
  readonly server: MailServer;
  readonly mail: MailMessage;
}

export type ChannelDelivery = HttpDelivery | MailDelivery;

/** Destination of a channel, for `svc doctor` and the Settings page. */
export type ChannelDestination =
  | { readonly kind: "url"; readonly url: string }
  | { readonly kind: "host"; readonly host: string; readonly port: number };

export interface ChannelDefinition<C> {
  readonly schema: z.ZodType<C>;
  /** Keys with secret values. A webhook's URL counts as one. */
  readonly secrets: readonly string[];
  destination(config: C): ChannelDestination;
  /** Returns the requests in sending order. */
  render(event: NotificationEvent, config: C, context: RenderContext): ChannelDelivery[];
}

/** Configuration keys of every channel. */
export const commonChannelFields = {
  name: z
    .string()
    .regex(
      /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
      "a channel name is up to 64 letters, digits, dots, dashes or underscores",
    )
    .optional(),
  events: z.array(z.enum(NOTIFICATION_NAMES)).min(1).optional(),
};

export const httpUrl = z.url({ protocol: /^https?$/, message: "must be an http or https URL" });

export function postJson(url: string, body: unknown, headers: Record<string, string> = {}): HttpDelivery {
  return {
    kind: "http",
    url,
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  };
}

/** Adds a service's API path to a URL without a path. */
export function withPath(url: string, path: string): string {
  const parsed = new URL(url);
  if (parsed.pathname === "/" || parsed.pathname === "") parsed.pathname = path;
  return parsed.href;
}
