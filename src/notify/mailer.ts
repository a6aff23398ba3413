/** Sends one email over SMTP to the address that the egress guard has checked, and verifies the host's name. */
import type { EgressClient } from "../egress/egress.ts";
import { SERVICE_LIMITS } from "../kernel/limits.ts";
import { withTimeout } from "../kernel/timeout.ts";
import type { MailDelivery } from "./channel.ts";

const MAIL_DEADLINE_MS = 3 * SERVICE_LIMITS.egress_timeout_ms;

export interface MailerDeps {
  readonly egress: Pick<EgressClient, "checkHost">;
  /** An additional certificate authority in PEM. The system's own are always trusted. */
  readonly ca?: string | undefined;
}

export async function sendMail(
  delivery: MailDelivery,
  parts: MailerDeps,
  signal?: AbortSignal,
): Promise<void> {
  const { server, mail } = delivery;
  const place = await parts.egress.checkHost(server.host, server.port);
  signal?.throwIfAborted();
  // Loaded with the first email, because most installations send none.
  const { createTransport } = await import("nodemailer");
  const transport = createTransport({
    host: place.address,
    port: place.port,
    secure: server.secure,
    requireTLS: server.starttls === "required",
    ignoreTLS: server.starttls === "off",
    tls: {
      // If plain text is acceptable too, an unverified certificate is not worse.
      rejectUnauthorized: server.secure || server.starttls === "required",
      minVersion: "TLSv1.2",
      ...(place.servername === undefined ? {} : { servername: place.servername }),
      ...(parts.ca === undefined ? {} : { ca: parts.ca }),
    },
    ...(server.user === undefined ? {} : { auth: { user: server.user, pass: server.password ?? "" } }),
    connectionTimeout: SERVICE_LIMITS.egress_timeout_ms,
    greetingTimeout: SERVICE_LIMITS.egress_timeout_ms,
    socketTimeout: SERVICE_LIMITS.egress_timeout_ms,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  const message = {
    from: mail.from,
    to: [...mail.to],
    subject: mail.subject,
    text: mail.text,
    messageId: mail.message_id,
    ...(mail.references === null ? {} : { references: mail.references }),
    headers: { ...mail.headers },
  };
  // nodemailer's timeouts restart with every byte, so a slow server could block a channel forever.
  await withTimeout(transport.sendMail(message), MAIL_DEADLINE_MS, unfinished, { signal });
}

function unfinished(): never {
  throw new Error(`the mail server did not finish within ${MAIL_DEADLINE_MS} ms`);
}
