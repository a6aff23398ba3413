/**
 * Email over SMTP, as plain text only, because HTML could imitate a page. TLS is required unless the server is on this
 * machine or the configuration allows otherwise.
 */
import * as z from "zod";
import { sha256Hex } from "../../kernel/hash.ts";
import {
  type ChannelDefinition,
  commonChannelFields,
  type MailMessage,
  type MailServer,
  type RenderContext,
} from "../channel.ts";
import type { NotificationEvent } from "../events.ts";
import { describeEvent, messageHeadline, type NotificationMessage } from "../message.ts";
import { defuseTags } from "../safe-text.ts";

const ADDRESS = /^[^\s@<>,;:"()[\]\\]+@[^\s@<>,;:"()[\]\\]+$/;
const NAMED = /^[^<>\r\n@,;:"]{0,100}<([^<>]+)>$/;
const address = z.string().refine((text) => ADDRESS.test(NAMED.exec(text)?.[1] ?? text), {
  message: "must be an address such as ops@example.com or Ops <ops@example.com>",
});
const LOCAL = /^(?:localhost\.?|127(?:\.\d{1,3}){3}|::1|\[::1\])$/i;

const base = z.strictObject({
  type: z.literal("smtp"),
  ...commonChannelFields,
  host: z.string().min(1),
  port: z.int().min(1).max(65_535).optional(),
  /** TLS from the first byte. Default: only on port 465. */
  secure: z.boolean().optional(),
  starttls: z.enum(["required", "optional", "off"]).optional(),
  user: z.string().min(1).optional(),
  password: z.string().optional(),
  from: address,
  to: z.array(address).min(1),
});
type SmtpConfig = z.infer<typeof base>;

const schema = base
  .refine((config) => (config.user === undefined) === (config.password === undefined), {
    message: "user and password must be set together",
    path: ["password"],
  })
  .refine((config) => config.user === undefined || isEncrypted(server(config)), {
    message: "a password must not be sent unencrypted; use secure: true or starttls: required",
    path: ["starttls"],
  });

const isLocal = (host: string) => LOCAL.test(host);
const isEncrypted = (to: MailServer) => to.secure || to.starttls === "required" || isLocal(to.host);

function server(config: SmtpConfig): MailServer {
  const secure = config.secure ?? config.port === 465;
  return {
    host: config.host,
    port: config.port ?? (secure ? 465 : 587),
    secure,
    starttls: config.starttls ?? (isLocal(config.host) ? "optional" : "required"),
    user: config.user,
    password: config.password,
  };
}

function compose(
  event: NotificationEvent,
  message: NotificationMessage,
  config: SmtpConfig,
  context: RenderContext,
): MailMessage {
  const width = Math.max(...message.facts.map(({ label }) => label.length)) + 1;
  const lines = [
    defuseTags(message.title, 500),
    "",
    ...(message.words === null
      ? []
      : [`${message.words.label}: ${defuseTags(message.words.value, 1_000)}`, ""]),
    ...message.facts.map(({ label, value }) => `${`${label}:`.padEnd(width)} ${defuseTags(value)}`),
    ...(message.link === null ? [] : ["", `${message.link.text}: ${message.link.url}`]),
    "",
  ];
  const domain = (NAMED.exec(config.from)?.[1] ?? config.from).split("@").at(-1)!;
  const id = (text: string) => `<${sha256Hex(text).slice(0, 32)}@${domain}>`;
  return {
    from: config.from,
    to: config.to,
    subject: defuseTags(`[svc] ${messageHeadline(message)}`, 200),
    text: lines.join("\n"),
    message_id: id(context.delivery_id),
    // Puts an alert, its reminders and its resolution in one thread.
    references: message.incident.change === "passes" ? null : id(message.incident.key),
    headers: { "auto-submitted": "auto-generated", "x-svc-event": event.event },
  };
}

export const smtpChannel: ChannelDefinition<SmtpConfig> = {
  schema,
  secrets: ["password"],
  destination(config) {
    const { host, port } = server(config);
    return { kind: "host", host, port };
  },
  render(event, config, context) {
    const mail = compose(event, describeEvent(event, context), config, context);
    return [{ kind: "mail", server: server(config), mail }];
  },
};
