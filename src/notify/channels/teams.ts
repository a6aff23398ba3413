/**
 * Microsoft Teams: an adaptive card in the message envelope that a workflow's webhook takes. Text from
 * outside goes into text runs, which Teams shows as they are; text blocks and facts would read Markdown.
 */
import * as z from "zod";
import { type Channel, common, httpUrl, postJson } from "../channel.ts";
import type { Severity } from "../events.ts";
import { describeEvent, type Fact, type Message } from "../message.ts";
import { tagless } from "../text.ts";

const schema = z.strictObject({ type: z.literal("teams"), ...common, url: httpUrl });

const COLORS: Record<Severity, string> = {
  critical: "attention",
  error: "attention",
  warning: "warning",
  info: "accent",
};

const run = (text: string, more: object = {}) => ({ type: "TextRun", text, ...more });
const line = (...inlines: object[]) => ({ type: "RichTextBlock", inlines });
const labelled = ({ label, value }: Fact, max = 300) =>
  line(run(`${label}: `, { weight: "bolder" }), run(tagless(value, max) || "-"));

function card(message: Message): object {
  const color = message.incident.change === "closes" ? "good" : COLORS[message.severity];
  return {
    $schema: "http://adaptivecards.io/schemas/adaptive-card.json",
    type: "AdaptiveCard",
    version: "1.4",
    msteams: { width: "Full" },
    fallbackText: message.heading,
    body: [
      { type: "TextBlock", text: message.heading, weight: "bolder", size: "medium", color, wrap: true },
      line(run(tagless(message.title, 500) || "-", { weight: "bolder" })),
      ...message.facts.map((fact) => labelled(fact)),
      ...(message.words === null ? [] : [labelled(message.words, 500)]),
    ],
    actions:
      message.link === null
        ? []
        : [{ type: "Action.OpenUrl", title: message.link.text, url: message.link.url }],
  };
}

export const teams: Channel<z.infer<typeof schema>> = {
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
