/**
 * Makes one delivery attempt and classifies its failure: temporary (the service is down or busy) or final (the service
 * or the egress rules reject the message).
 */
import type { EgressClient } from "../egress/egress.ts";
import { EgressRefusedError } from "../egress/refusal.ts";
import { messageOf } from "../kernel/errors.ts";
import { SERVICE_LIMITS } from "../kernel/limits.ts";
import type { ChannelDelivery, HttpDelivery } from "./channel.ts";
import { type MailerDeps, sendMail } from "./mailer.ts";
import type { PushDelivery } from "./push/message.ts";
import { plainLine } from "./safe-text.ts";

export interface DeliveryDeps extends MailerDeps {
  readonly egress: Pick<EgressClient, "request" | "checkHost">;
}

export class DeliveryError extends Error {
  readonly retry: boolean;
  /** Wait that the service asked for. */
  readonly after_ms: number | null;
  /** Status of the service's answer; null if there was none. */
  readonly status: number | null;

  constructor(
    problem: string,
    retry: boolean,
    { after_ms = null, status = null }: { after_ms?: number | null; status?: number | null } = {},
  ) {
    super(problem);
    this.name = "Undelivered";
    this.retry = retry;
    this.after_ms = after_ms;
    this.status = status;
  }
}

const ANSWER_BYTES = 4_096;
const LONGEST_WAIT_MS = 60_000;
/**
 * Documented error codes of chat services, which the log can repeat. Other response texts are not logged: they may echo
 * the message, or the URL, whose path is a password.
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

/** Resolves once the service has accepted the message. Throws only `Undelivered`. */
export async function deliverMessage(
  delivery: ChannelDelivery,
  parts: DeliveryDeps,
  signal?: AbortSignal,
): Promise<void> {
  try {
    if (delivery.kind === "mail") await sendMail(delivery, parts, signal);
    else await post(delivery, parts, signal);
  } catch (error) {
    if (error instanceof DeliveryError) throw error;
    const retry = !(error instanceof EgressRefusedError) && !isFinalMailError(error);
    throw new DeliveryError(mailAnswer(error) ?? plainLine(messageOf(error)), retry);
  }
}

/** Sends an encrypted push message. Push services answer it themselves, so redirects are not followed. */
export async function deliverPush(
  delivery: PushDelivery,
  parts: Pick<DeliveryDeps, "egress">,
  signal?: AbortSignal,
): Promise<void> {
  try {
    await post(delivery, parts, signal, false);
  } catch (error) {
    if (error instanceof DeliveryError) throw error;
    throw new DeliveryError(plainLine(messageOf(error)), !(error instanceof EgressRefusedError));
  }
}

async function post(
  delivery: Pick<HttpDelivery, "url" | "headers"> & { readonly body: string | Uint8Array },
  parts: Pick<DeliveryDeps, "egress">,
  signal?: AbortSignal,
  follow_redirects = true,
): Promise<void> {
  const { status, headers, body } = await parts.egress.request(delivery.url, {
    method: "POST",
    headers: delivery.headers,
    secret_headers: Object.keys(delivery.headers),
    body: delivery.body,
    timeout_ms: SERVICE_LIMITS.egress_timeout_ms,
    max_bytes: ANSWER_BYTES,
    cut: true,
    follow_redirects,
    ...(signal === undefined ? {} : { signal }),
  });
  if (status >= 200 && status < 300) return;
  const said = Buffer.from(body).toString("utf8").trim();
  const retry = status === 408 || status === 425 || status === 429 || status >= 500;
  const words = KNOWN_ANSWERS.has(said) ? `: ${said}` : "";
  throw new DeliveryError(`answered ${status}${words}`, retry, { status, after_ms: retryAfter(headers) });
}

function retryAfter(headers: Readonly<Record<string, string>>): number | null {
  const value = headers["retry-after"];
  if (value === undefined || !/^\d{1,6}$/.test(value)) return null;
  return Math.min(Number(value) * 1_000, LONGEST_WAIT_MS);
}

/** Describes a mail server's refusal without the server's text, which may repeat the login. */
function mailAnswer(error: unknown): string | undefined {
  const { responseCode, command } = error as { responseCode?: unknown; command?: unknown };
  if (typeof responseCode !== "number") return undefined;
  const to = typeof command === "string" && /^[A-Z0-9 -]{1,20}$/.test(command) ? ` to ${command}` : "";
  return `the mail server answered ${responseCode}${to}`;
}

/** In SMTP, 5xx and a refused login are final; 4xx and connection errors are temporary. */
function isFinalMailError(error: unknown): boolean {
  const { responseCode, code } = error as { responseCode?: unknown; code?: unknown };
  if (typeof responseCode === "number") return responseCode >= 500;
  return code === "EAUTH" || code === "EENVELOPE" || code === "EMESSAGE";
}
