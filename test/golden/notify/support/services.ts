/**
 * What the real services demand of a request, as far as their documentation says it: required members,
 * allowed values, lengths. A fake receiver answers as the service would when something is amiss.
 */
import { z } from "zod";

const plainText = (max: number) =>
  z.strictObject({ type: z.literal("plain_text"), text: z.string().min(1).max(max), emoji: z.boolean().optional() });
const mrkdwn = z.strictObject({ type: z.literal("mrkdwn"), text: z.string().min(1).max(3_000), verbatim: z.boolean().optional() });

const slackBlock = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("header"), text: plainText(150) }),
  z
    .strictObject({
      type: z.literal("section"),
      text: plainText(3_000).optional(),
      fields: z.array(plainText(2_000)).min(1).max(10).optional(),
    })
    .refine((block) => block.text !== undefined || block.fields !== undefined),
  z.strictObject({
    type: z.literal("actions"),
    block_id: z.string().max(255),
    elements: z
      .array(
        z.strictObject({
          type: z.literal("button"),
          text: plainText(75),
          style: z.enum(["primary", "danger"]).optional(),
          action_id: z.string().max(255),
          value: z.string().max(2_000).optional(),
          url: z.url().max(3_000).optional(),
        }),
      )
      .min(1)
      .max(25),
  }),
  z.strictObject({ type: z.literal("context"), elements: z.array(z.union([mrkdwn, plainText(2_000)])).min(1).max(10) }),
]);

const cardItem = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("TextBlock"),
    text: z.string(),
    weight: z.enum(["default", "lighter", "bolder"]),
    size: z.enum(["default", "small", "medium", "large", "extraLarge"]),
    color: z.enum(["default", "dark", "light", "accent", "good", "warning", "attention"]),
    wrap: z.boolean(),
  }),
  z.strictObject({
    type: z.literal("RichTextBlock"),
    inlines: z
      .array(z.strictObject({ type: z.literal("TextRun"), text: z.string().min(1), weight: z.literal("bolder").optional() }))
      .min(1),
  }),
]);

const pagerdutyTrigger = z.strictObject({
  routing_key: z.string().min(1),
  event_action: z.literal("trigger"),
  dedup_key: z.string().min(1).max(255),
  client: z.string(),
  client_url: z.url().optional(),
  links: z.array(z.strictObject({ href: z.url(), text: z.string() })),
  payload: z.strictObject({
    summary: z.string().min(1).max(1_024),
    source: z.string().min(1),
    severity: z.enum(["critical", "error", "warning", "info"]),
    timestamp: z.iso.datetime(),
    class: z.string(),
    custom_details: z.record(z.string(), z.string()),
  }),
});
const pagerdutyResolve = z.strictObject({
  routing_key: z.string().min(1),
  event_action: z.literal("resolve"),
  dedup_key: z.string().min(1).max(255),
});

const opsgenieCreate = z.strictObject({
  message: z.string().min(1).max(130),
  alias: z.string().min(1).max(512),
  description: z.string().max(15_000),
  tags: z.array(z.string().max(50)).max(20),
  details: z.record(z.string(), z.string()).refine((details) => JSON.stringify(details).length <= 8_000),
  entity: z.string().max(512),
  source: z.string().max(100),
  priority: z.enum(["P1", "P2", "P3", "P4", "P5"]),
});
const opsgenieClose = z.strictObject({
  user: z.string().max(100),
  source: z.string().max(100),
  note: z.string().max(25_000),
});

export const SERVICES = {
  slack: z.strictObject({
    text: z.string().min(1).max(40_000),
    mrkdwn: z.literal(false),
    unfurl_links: z.literal(false),
    unfurl_media: z.literal(false),
    blocks: z.array(slackBlock).min(1).max(50),
  }),
  teams: z
    .strictObject({
      type: z.literal("message"),
      attachments: z
        .array(
          z.strictObject({
            contentType: z.literal("application/vnd.microsoft.card.adaptive"),
            contentUrl: z.null(),
            content: z.strictObject({
              $schema: z.literal("http://adaptivecards.io/schemas/adaptive-card.json"),
              type: z.literal("AdaptiveCard"),
              version: z.enum(["1.2", "1.3", "1.4", "1.5"]),
              msteams: z.strictObject({ width: z.literal("Full") }),
              fallbackText: z.string(),
              body: z.array(cardItem).min(1),
              actions: z.array(z.strictObject({ type: z.literal("Action.OpenUrl"), title: z.string(), url: z.url() })),
            }),
          }),
        )
        .length(1),
    })
    .refine((message) => JSON.stringify(message).length <= 28_000, "a Teams message is 28 KB at most"),
  pagerduty: z.discriminatedUnion("event_action", [pagerdutyTrigger, pagerdutyResolve]),
  opsgenie: z.union([opsgenieCreate, opsgenieClose]),
} as const;
