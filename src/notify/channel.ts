/**
 * What a channel is: a configuration schema and a pure `render` from an event to the requests that the
 * service takes. Sending, waiting and retrying are the same for all and live elsewhere.
 */
import * as z from "zod";
import type { NotificationEvent } from "./events.ts";
import { NOTIFICATION_NAMES } from "./events.ts";

export interface RenderContext {
  /** The channel's name, as configured. */
  readonly channel: string;
  readonly console_url: string | null;
  readonly environment: string | null;
  readonly now_ms: number;
  /** The same on every retry, so that a receiver can tell a repeat. */
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
  /** TLS from the first byte; otherwise STARTTLS as `starttls` says. */
  readonly secure: boolean;
  readonly starttls: "required" | "optional" | "off";
  readonly user: string | undefined;
  readonly password: string | undefined;
}

export interface Mail {
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
  readonly mail: Mail;
}

export type Delivery = HttpDelivery | MailDelivery;

/** Where a channel sends to, for `svc doctor` and the Settings page. */
export type Destination =
  | { readonly kind: "url"; readonly url: string }
  | { readonly kind: "host"; readonly host: string; readonly port: number };

export interface Channel<C> {
  readonly schema: z.ZodType<C>;
  /** Keys whose values are secrets; a webhook's address counts as one. */
  readonly secrets: readonly string[];
  destination(config: C): Destination;
  /** In the order they must be sent. */
  render(event: NotificationEvent, config: C, context: RenderContext): Delivery[];
}

/** Keys that every channel has. */
export const common = {
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

/** A service's API path, put behind an address that names none. */
export function withPath(url: string, path: string): string {
  const parsed = new URL(url);
  if (parsed.pathname === "/" || parsed.pathname === "") parsed.pathname = path;
  return parsed.href;
}
