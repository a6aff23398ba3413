/**
 * One attempt to hand a message over, and what its failure means: worth another try (the service is
 * away or busy) or final (it does not want this, or the egress rules do not).
 */
import type { Egress } from "../egress/egress.ts";
import { EgressRefused } from "../egress/refusal.ts";
import { messageOf } from "../kernel/errors.ts";
import { LIMITS } from "../kernel/limits.ts";
import type { Delivery, HttpDelivery } from "./channel.ts";
import { type MailerParts, sendMail } from "./mailer.ts";
import { plainLine } from "./text.ts";

export interface DeliverParts extends MailerParts {
  readonly egress: Pick<Egress, "request" | "checkHost">;
}

export class Undelivered extends Error {
  readonly retry: boolean;
  /** How long the service asked us to wait. */
  readonly after_ms: number | null;

  constructor(problem: string, retry: boolean, after_ms: number | null = null) {
    super(problem);
    this.name = "Undelivered";
    this.retry = retry;
    this.after_ms = after_ms;
  }
}

const ANSWER_BYTES = 4_096;
const LONGEST_WAIT_MS = 60_000;
/**
 * What a chat service says where something is to be mended, in its documented words. Whatever else a receiver
 * answers is not repeated: it may echo the address, whose path is a password, or what was sent to it.
 */
const KNOWN_ANSWERS: ReadonlySet<string> = new Set([
  "action_prohibited",
  "channel_is_archived",
  "channel_not_found",
  "invalid_payload",
  "invalid_token",
  "no_active_hooks",
  "no_service",
  "no_service_id",
  "no_team",
  "no_text",
  "posting_to_general_channel_denied",
  "team_disabled",
  "too_many_attachments",
  "user_not_found",
]);

/** Resolves when the service has taken the message; throws only Undelivered. */
export async function deliverMessage(
  delivery: Delivery,
  parts: DeliverParts,
  signal?: AbortSignal,
): Promise<void> {
  try {
    if (delivery.kind === "mail") await sendMail(delivery, parts, signal);
    else await post(delivery, parts, signal);
  } catch (error) {
    if (error instanceof Undelivered) throw error;
    const retry = !(error instanceof EgressRefused) && !isFinalMailError(error);
    throw new Undelivered(mailAnswer(error) ?? plainLine(messageOf(error)), retry);
  }
}

async function post(delivery: HttpDelivery, parts: DeliverParts, signal?: AbortSignal): Promise<void> {
  const { status, headers, body } = await parts.egress.request(delivery.url, {
    method: "POST",
    headers: delivery.headers,
    secret_headers: Object.keys(delivery.headers),
    body: delivery.body,
    timeout_ms: LIMITS.egress_timeout_ms,
    max_bytes: ANSWER_BYTES,
    cut: true,
    ...(signal === undefined ? {} : { signal }),
  });
  if (status >= 200 && status < 300) return;
  const said = Buffer.from(body).toString("utf8").trim();
  const retry = status === 408 || status === 425 || status === 429 || status >= 500;
  const words = KNOWN_ANSWERS.has(said) ? `: ${said}` : "";
  throw new Undelivered(`answered ${status}${words}`, retry, retryAfter(headers));
}

function retryAfter(headers: Readonly<Record<string, string>>): number | null {
  const value = headers["retry-after"];
  if (value === undefined || !/^\d{1,6}$/.test(value)) return null;
  return Math.min(Number(value) * 1_000, LONGEST_WAIT_MS);
}

/** A mail server's refusal without its own words, which may repeat the login. */
function mailAnswer(error: unknown): string | undefined {
  const { responseCode, command } = error as { responseCode?: unknown; command?: unknown };
  if (typeof responseCode !== "number") return undefined;
  const to = typeof command === "string" && /^[A-Z0-9 -]{1,20}$/.test(command) ? ` to ${command}` : "";
  return `the mail server answered ${responseCode}${to}`;
}

/** SMTP: 5xx and a refused login are final, 4xx and everything about the connection is not. */
function isFinalMailError(error: unknown): boolean {
  const { responseCode, code } = error as { responseCode?: unknown; code?: unknown };
  if (typeof responseCode === "number") return responseCode >= 500;
  return code === "EAUTH" || code === "EENVELOPE" || code === "EMESSAGE";
}
