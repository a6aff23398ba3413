/** Sends one mail over SMTP to the address that the egress guard has checked, verifying the host's own name. */
import type { Egress } from "../egress/egress.ts";
import { within } from "../kernel/deadline.ts";
import { LIMITS } from "../kernel/limits.ts";
import type { MailDelivery } from "./channel.ts";

const MAIL_DEADLINE_MS = 3 * LIMITS.egress_timeout_ms;

export interface MailerParts {
  readonly egress: Pick<Egress, "checkHost">;
  /** A further certificate authority, in PEM; the system's own always count. */
  readonly ca?: string | undefined;
}

export async function sendMail(
  delivery: MailDelivery,
  parts: MailerParts,
  signal?: AbortSignal,
): Promise<void> {
  const { server, mail } = delivery;
  const place = await parts.egress.checkHost(server.host, server.port);
  signal?.throwIfAborted();
  // Loaded with the first mail: most installations send none.
  const { createTransport } = await import("nodemailer");
  const transport = createTransport({
    host: place.address,
    port: place.port,
    secure: server.secure,
    requireTLS: server.starttls === "required",
    ignoreTLS: server.starttls === "off",
    tls: {
      // Where plain text would do as well, an unproven certificate is no worse.
      rejectUnauthorized: server.secure || server.starttls === "required",
      minVersion: "TLSv1.2",
      ...(place.servername === undefined ? {} : { servername: place.servername }),
      ...(parts.ca === undefined ? {} : { ca: parts.ca }),
    },
    ...(server.user === undefined ? {} : { auth: { user: server.user, pass: server.password ?? "" } }),
    connectionTimeout: LIMITS.egress_timeout_ms,
    greetingTimeout: LIMITS.egress_timeout_ms,
    socketTimeout: LIMITS.egress_timeout_ms,
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
  // nodemailer's own timeouts start anew with every byte; a server that trickles must not hold a channel for ever.
  await within(transport.sendMail(message), MAIL_DEADLINE_MS, unfinished, { signal });
}

function unfinished(): never {
  throw new Error(`the mail server did not finish within ${MAIL_DEADLINE_MS} ms`);
}
