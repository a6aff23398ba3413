/**
 * Microsoft Teams: an adaptive card in the message envelope of a workflow's webhook. External text is placed only in
 * text runs, which are literal; text blocks and facts would interpret Markdown.
 */
import * as z from "zod";
import { type ChannelDefinition, commonChannelFields, httpUrl, postJson } from "../channel.ts";
import type { AlertSeverity } from "../events.ts";
import { describeEvent, type MessageFact, type NotificationMessage } from "../message.ts";
import { defuseTags } from "../safe-text.ts";

const schema = z.strictObject({ type: z.literal("teams"), ...commonChannelFields, url: httpUrl });

const COLORS: Record<AlertSeverity, string> = {
  critical: "attention",
  error: "attention",
  warning: "warning",
  info: "accent",
};

const run = (text: string, more: object = {}) => ({ type: "TextRun", text, ...more });
const line = (...inlines: object[]) => ({ type: "RichTextBlock", inlines });
const labelled = ({ label, value }: MessageFact, max = 300) =>
  line(run(`${label}: `, { weight: "bolder" }), run(defuseTags(value, max) || "-"));

function card(message: NotificationMessage): object {
  const color = message.incident.change === "closes" ? "good" : COLORS[message.severity];
  return {
    $schema: "http://adaptivecards.io/schemas/adaptive-card.json",
    type: "AdaptiveCard",
    version: "1.4",
    msteams: { width: "Full" },
    fallbackText: message.heading,
    body: [
      { type: "TextBlock", text: message.heading, weight: "bolder", size: "medium", color, wrap: true },
      line(run(defuseTags(message.title, 500) || "-", { weight: "bolder" })),
      ...message.facts.map((fact) => labelled(fact)),
      ...(message.words === null ? [] : [labelled(message.words, 500)]),
    ],
    actions:
      message.link === null
        ? []
        : [{ type: "Action.OpenUrl", title: message.link.text, url: message.link.url }],
  };
}

export const teamsChannel: ChannelDefinition<z.infer<typeof schema>> = {
  schema,
  secrets: ["url"],
  destination: (config) => ({ kind: "url", url: config.url }),
  render(event, config, context) {
    const contentType = "application/vnd.microsoft.card.adaptive";
    const content = card(describeEvent(event, context));
    return [
      postJson(config.url, { type: "message", attachments: [{ contentType, contentUrl: null, content }] }),
    ];
  },
};
