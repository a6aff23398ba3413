/** The channel kinds by the name that the configuration uses. A new kind is a file beside this one and a row here. */
import * as z from "zod";
import { ProblemsError } from "../../kernel/errors.ts";
import type { Channel, Delivery, Destination, RenderContext } from "../channel.ts";
import type { NotificationEvent } from "../events.ts";
import { opsgenie } from "./opsgenie.ts";
import { pagerduty } from "./pagerduty.ts";
import { slack } from "./slack.ts";
import { smtp } from "./smtp.ts";
import { teams } from "./teams.ts";
import { webhook } from "./webhook.ts";

export const CHANNELS = { slack, teams, pagerduty, opsgenie, smtp, webhook } as const;

export type ChannelType = keyof typeof CHANNELS;
export const CHANNEL_TYPES = Object.keys(CHANNELS) as ChannelType[];

type ConfigOf<T> = T extends Channel<infer C> ? C : never;
export type ChannelConfig = { [type in ChannelType]: ConfigOf<(typeof CHANNELS)[type]> }[ChannelType];

/** The row of a configuration's own type, which its schema has already matched. */
const rowOf = (config: ChannelConfig) => CHANNELS[config.type] as Channel<never>;

export function renderFor(
  config: ChannelConfig,
  event: NotificationEvent,
  context: RenderContext,
): Delivery[] {
  return rowOf(config).render(event, config as never, context);
}

export function destinationOf(config: ChannelConfig): Destination {
  return rowOf(config).destination(config as never);
}

const channelSchema = z.discriminatedUnion("type", [
  slack.schema,
  teams.schema,
  pagerduty.schema,
  opsgenie.schema,
  smtp.schema,
  webhook.schema,
] as never) as unknown as z.ZodType<ChannelConfig>;

/** The list under `notifications.channels`. A channel without a name is called by its type. */
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

/** Channels as they were configured, checked and with their defaults; every problem is told at once. */
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
