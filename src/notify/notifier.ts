/**
 * Sends notifications. `notify` returns at once and never throws. Every channel has its own queue; its failures are
 * logged and shown on the Settings page, and never change a decision.
 */
import type { RuntimeEnv } from "../kernel/env.ts";
import { messageOf, notFoundError } from "../kernel/errors.ts";
import { settleWithin } from "../kernel/timeout.ts";
import type { ServiceLogger } from "../telemetry/log.ts";
import type { ChannelDestination, RenderContext } from "./channel.ts";
import {
  type ChannelConfig,
  type ChannelType,
  destinationOf,
  nameOf,
  readChannels,
  renderFor,
} from "./channels/table.ts";
import { type DeliveryDeps, deliverMessage } from "./deliver.ts";
import type { NotificationEvent, NotificationName } from "./events.ts";
import { ChannelQueue, type QueueStats } from "./queue.ts";

export interface NotifierSettings {
  /** Configured channels, validated here, so that a misspelled key stops the start and not a message. */
  readonly channels: readonly unknown[];
  /** `SVC_APPROVAL_WEBHOOK`: the older single webhook, which gets approval requests in addition to the channels. */
  readonly approval_webhook?: string | null | undefined;
  readonly console_url?: string | null | undefined;
  readonly environment?: string | null | undefined;
  /** Whether chat buttons reach this server. If not, messages have none. Default: true. */
  readonly chat_actions?: boolean | undefined;
}

/** Messages to the browsers of single people, in addition to the channels. */
export interface PersonalMessages {
  notify(event: NotificationEvent): void;
  /** Whether any person gets messages. */
  isHeard(): Promise<boolean>;
  drain(deadline_ms: number): Promise<void>;
}

export interface NotifierDeps extends DeliveryDeps {
  readonly personal?: PersonalMessages | undefined;
  readonly env: RuntimeEnv;
  readonly log: ServiceLogger;
  /** Removes credentials from a text. */
  readonly redact: (text: string) => string;
}

export interface ChannelInfo extends QueueStats {
  readonly name: string;
  readonly type: ChannelType;
  /** Host only, because the rest of a webhook's URL is a secret. */
  readonly host: string;
  readonly events: readonly NotificationName[] | null;
}

export interface TestResult {
  readonly channel: string;
  readonly type: ChannelType;
  readonly ok: boolean;
  readonly error: string | null;
}

export interface EventNotifier {
  notify(event: NotificationEvent): void;
  /** Sends a test message through one channel or all, once and at once. Resolves to the result of each channel. */
  sendTest(by: string, channel?: string): Promise<TestResult[]>;
  channels(): ChannelInfo[];
  /** Whether there is a channel, or a person who gets messages. */
  isHeard(): Promise<boolean>;
  /** All destinations of messages, for a check that sends nothing. */
  destinations(): { readonly name: string; readonly destination: ChannelDestination }[];
  /** Accepts no more events and sends the queued ones, for at most this time. */
  drain(deadline_ms: number): Promise<void>;
}

const APPROVAL_WEBHOOK = "SVC_APPROVAL_WEBHOOK";

export function createNotifier(settings: NotifierSettings, parts: NotifierDeps): EventNotifier {
  return new ChannelNotifier(settings, parts);
}

interface Outlet {
  readonly name: string;
  readonly config: ChannelConfig;
  readonly queue: ChannelQueue;
  readonly log: ServiceLogger;
}

class ChannelNotifier implements EventNotifier {
  private readonly settings: NotifierSettings;
  private readonly parts: NotifierDeps;
  private readonly outlets: readonly Outlet[];
  private closed = false;

  constructor(settings: NotifierSettings, parts: NotifierDeps) {
    this.settings = settings;
    this.parts = parts;
    const outlets = readChannels(settings.channels).map((config) => this.outlet(nameOf(config), config));
    const url = settings.approval_webhook;
    if (url) {
      outlets.push(this.outlet(APPROVAL_WEBHOOK, { type: "webhook", url, events: ["approval_requested"] }));
    }
    this.outlets = outlets;
  }

  notify(event: NotificationEvent): void {
    try {
      if (this.closed) return;
      this.parts.personal?.notify(event);
      // Redacted with the first message, so that the caller does not wait for it.
      let clean: NotificationEvent | undefined;
      for (const { name, config, queue } of this.outlets) {
        if (!wants(config.events, event.event)) continue;
        const context = this.context(name);
        const render = () => {
          clean ??= redacted(event, this.parts.redact);
          return renderFor(config, clean, context);
        };
        queue.push({ event: event.event, render });
      }
    } catch (error) {
      this.parts.log.warn("notification could not be created", { problem: messageOf(error) });
    }
  }

  async sendTest(by: string, channel?: string): Promise<TestResult[]> {
    const chosen = this.outlets.filter(
      ({ name }) => name !== APPROVAL_WEBHOOK && (channel === undefined || name === channel),
    );
    if (channel !== undefined && chosen.length === 0) {
      throw notFoundError(`no notification channel is named ${JSON.stringify(channel)}`);
    }
    return Promise.all(chosen.map((outlet) => this.test(outlet, by)));
  }

  channels(): ChannelInfo[] {
    return this.outlets.map(({ name, config, queue }) => {
      const place = destinationOf(config);
      return {
        name,
        type: config.type,
        host: place.kind === "url" ? new URL(place.url).host : `${place.host}:${place.port}`,
        events: config.events ?? null,
        ...queue.stats(),
      };
    });
  }

  async isHeard(): Promise<boolean> {
    return this.outlets.length > 0 || ((await this.parts.personal?.isHeard()) ?? false);
  }

  destinations(): { name: string; destination: ChannelDestination }[] {
    return this.outlets.map(({ name, config }) => ({ name, destination: destinationOf(config) }));
  }

  async drain(deadline_ms: number): Promise<void> {
    this.closed = true;
    const sent = this.outlets.map(({ queue }) => queue.idle());
    const people = this.parts.personal?.drain(deadline_ms);
    await Promise.all([settleWithin(Promise.all(sent), deadline_ms, this.parts), people]);
    for (const { queue, log } of this.outlets) {
      const left = queue.abandon();
      if (left > 0) log.warn("notifications not sent before the shutdown", { left });
    }
  }

  private outlet(name: string, config: ChannelConfig): Outlet {
    const log = this.parts.log.child({ channel: name, type: config.type });
    const send = (delivery: Parameters<typeof deliverMessage>[0], signal: AbortSignal) =>
      deliverMessage(delivery, this.parts, signal);
    return { name, config, log, queue: new ChannelQueue({ env: this.parts.env, log, send }) };
  }

  private async test({ name, config, queue, log }: Outlet, by: string): Promise<TestResult> {
    let error: string | null = null;
    try {
      const event = redacted({ event: "test", by } as const, this.parts.redact);
      for (const delivery of renderFor(config, event, this.context(name)))
        await deliverMessage(delivery, this.parts);
    } catch (thrown) {
      error = messageOf(thrown);
      log.warn("test notification not delivered", { problem: error });
    }
    queue.note(error);
    return { channel: name, type: config.type, ok: error === null, error };
  }

  private context(channel: string): RenderContext {
    return {
      channel,
      console_url: this.settings.console_url ?? null,
      environment: this.settings.environment ?? null,
      now_ms: this.parts.env.now(),
      delivery_id: this.parts.env.uuid(),
      chat_actions: this.settings.chat_actions ?? true,
    };
  }
}

/**
 * Whether a channel gets an event. A digest replaces the messages of its requests, and a plan those of its calls, so
 * subscribers to approval requests get both.
 */
function wants(events: readonly NotificationName[] | undefined, name: NotificationName): boolean {
  if (events === undefined || events.includes(name)) return true;
  return (name === "approval_digest" || name === "plan_proposed") && events.includes("approval_requested");
}

/** Fields with our own texts and ids, which must stay unchanged: a button returns an id. */
const OURS = new Set(["event", "id", "kind", "severity"]);

/** Removes credentials from all fields before any channel sees the event. */
function redacted<E extends NotificationEvent>(event: E, redact: (text: string) => string): E {
  const walk = (value: unknown): unknown => {
    if (typeof value === "string") return redact(value);
    if (Array.isArray(value)) return value.map(walk);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, member]) => [key, OURS.has(key) ? member : walk(member)]),
    );
  };
  return walk(event) as E;
}
