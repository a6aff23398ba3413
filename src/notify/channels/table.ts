/** Table of channel kinds by their configuration name. A new kind needs a file in this directory and a row here. */
import * as z from "zod";
import { ProblemsError } from "../../kernel/errors.ts";
import type { ChannelDefinition, ChannelDelivery, ChannelDestination, RenderContext } from "../channel.ts";
import type { NotificationEvent } from "../events.ts";
import { opsgenieChannel } from "./opsgenie.ts";
import { pagerdutyChannel } from "./pagerduty.ts";
import { slackChannel } from "./slack.ts";
import { smtpChannel } from "./smtp.ts";
import { teamsChannel } from "./teams.ts";
import { webhookChannel } from "./webhook.ts";

export const CHANNEL_TABLE = {
  slack: slackChannel,
  teams: teamsChannel,
  pagerduty: pagerdutyChannel,
  opsgenie: opsgenieChannel,
  smtp: smtpChannel,
  webhook: webhookChannel,
} as const;

export type ChannelType = keyof typeof CHANNEL_TABLE;
export const CHANNEL_TYPES = Object.keys(CHANNEL_TABLE) as ChannelType[];

type ConfigOf<T> = T extends ChannelDefinition<infer C> ? C : never;
export type ChannelConfig = { [type in ChannelType]: ConfigOf<(typeof CHANNEL_TABLE)[type]> }[ChannelType];

/** Row for a configuration's type, which the schema has matched. */
const rowOf = (config: ChannelConfig) => CHANNEL_TABLE[config.type] as ChannelDefinition<never>;

export function renderFor(
  config: ChannelConfig,
  event: NotificationEvent,
  context: RenderContext,
): ChannelDelivery[] {
  return rowOf(config).render(event, config as never, context);
}

export function destinationOf(config: ChannelConfig): ChannelDestination {
  return rowOf(config).destination(config as never);
}

const channelSchema = z.discriminatedUnion("type", [
  slackChannel.schema,
  teamsChannel.schema,
  pagerdutyChannel.schema,
  opsgenieChannel.schema,
  smtpChannel.schema,
  webhookChannel.schema,
] as never) as z.ZodType<ChannelConfig>;

/** Schema of `notifications.channels`. A channel without a name is named after its type. */
export const channelsSchema = z.array(channelSchema).superRefine((channels, context) => {
  const seen = new Set<string>();
  channels.forEach((channel, index) => {
    const name = nameOf(channel);
    if (seen.has(name)) {
      context.addIssue({ code: "custom", path: [index, "name"], message: `two channels are named ${name}` });
    }
    seen.add(name);
  });
});

/** Validates configured channels and adds defaults. Reports all problems at once. */
export function readChannels(value: unknown): ChannelConfig[] {
  const read = channelsSchema.safeParse(value);
  if (read.success) return read.data;
  throw new ProblemsError(
    read.error.issues.map(({ path, message }) => `notifications.channels[${path.join(".")}]: ${message}`),
  );
}

export function nameOf(config: ChannelConfig): string {
  return config.name ?? config.type;
}
