/**
 * Slack incoming webhook with blocks. External text is placed only in `plain_text` objects, which support no mentions,
 * links or markup, and it is escaped too. The only `mrkdwn` text is our own link.
 */
import * as z from "zod";
import {
  type ChannelDefinition,
  commonChannelFields,
  httpUrl,
  postJson,
  type RenderContext,
} from "../channel.ts";
import type { NotificationEvent } from "../events.ts";
import { describeEvent, messageHeadline, type NotificationMessage } from "../message.ts";
import { defuseText } from "../safe-text.ts";

const schema = z.strictObject({ type: z.literal("slack"), ...commonChannelFields, url: httpUrl });

/** Escapes Slack's three control characters. All others are literal in plain text. */
const escaped = (text: string, max: number) =>
  defuseText(text, max).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/** Escaping can make a text five times longer, and Slack rejects fields over 2,000 characters. */
const text = (value: string, max = 300) => ({
  type: "plain_text",
  text: escaped(value, max) || "-",
  emoji: false,
});

const button = (label: string, style: "primary" | "danger", action_id: string, value: string) => ({
  type: "button",
  text: { type: "plain_text", text: label, emoji: false },
  style,
  action_id,
  value,
});

/** First a link to the card, which shows the values. The decision buttons are for approvers who do not need them. */
function buttons(id: string, { link }: NotificationMessage, { chat_actions }: RenderContext): object[] {
  const open = {
    type: "button",
    text: { type: "plain_text", text: "Open the card", emoji: false },
    action_id: "svc_open",
    ...(link === null ? {} : { url: link.url }),
  };
  const decide = [button("Approve", "primary", "svc_approve", id), button("Deny", "danger", "svc_deny", id)];
  return [...(link === null ? [] : [open]), ...(chat_actions ? decide : [])];
}

function blocks(event: NotificationEvent, message: NotificationMessage, context: RenderContext): object[] {
  const out: object[] = [
    { type: "header", text: text(message.heading) },
    { type: "section", text: text(message.title, 500) },
  ];
  // Slack limits a section to ten fields.
  for (let i = 0; i < message.facts.length; i += 10) {
    const fields = message.facts.slice(i, i + 10).map(({ label, value }) => ({
      ...text(""),
      text: `${label}\n${escaped(value, 300) || "-"}`,
    }));
    out.push({ type: "section", fields });
  }
  if (message.words !== null) {
    const { label, value } = message.words;
    out.push({ type: "section", text: text(`${label}: ${value}`, 500) });
  }
  const elements = event.event === "approval_requested" ? buttons(event.id, message, context) : [];
  if (elements.length > 0) out.push({ type: "actions", block_id: "svc_approval", elements });
  if (message.link !== null) {
    const link = { type: "mrkdwn", text: `<${message.link.url}|${message.link.text}>`, verbatim: true };
    out.push({ type: "context", elements: [link] });
  }
  return out;
}

export const slackChannel: ChannelDefinition<z.infer<typeof schema>> = {
  schema,
  secrets: ["url"],
  destination: (config) => ({ kind: "url", url: config.url }),
  render(event, config, context) {
    const message = describeEvent(event, context);
    return [
      postJson(config.url, {
        text: escaped(messageHeadline(message), 300),
        mrkdwn: false,
        unfurl_links: false,
        unfurl_media: false,
        blocks: blocks(event, message, context),
      }),
    ];
  },
};
