/**
 * Push messages of a running service. Each event goes to the people whose vote counts, and each notification is
 * withdrawn when it no longer waits for them. Every device has its own queue; a failure is logged and changes nothing.
 */
import { isIrreversible } from "../../govern/approvals/approval.ts";
import { changeDeviceUnit, forgetDeviceUnit } from "../../govern/push/change-devices.ts";
import { deviceOwnerKey, isQuiet, type PushDevice } from "../../govern/push/device.ts";
import { messageOf } from "../../kernel/errors.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { settleWithin } from "../../kernel/timeout.ts";
import { DeliveryError, deliverPush } from "../../notify/deliver.ts";
import type { AlertRaised, NotificationEvent } from "../../notify/events.ts";
import type { PersonalMessages } from "../../notify/notifier.ts";
import {
  loadSealer,
  type MessageSealer,
  type PushDelivery,
  type PushMessage,
} from "../../notify/push/message.ts";
import { ChannelQueue } from "../../notify/queue.ts";
import type { ServiceApp } from "../app.ts";
import {
  digestId,
  hearsAlerts,
  isAsked,
  PendingReader,
  type PushPerson,
  peopleWithDevices,
  personToday,
} from "./audience.ts";
import { pushOff, serverKeys } from "./server-keys.ts";

const MAX_EVENTS = 1_000;
/** Ledger events after which a request may no longer wait for a person. */
const ENDINGS: ReadonlySet<string> = new Set([
  "approved",
  "denied",
  "approval_expired",
  "plan_approved",
  "plan_denied",
  "delegation_revoked",
  "key_changed",
  "key_deleted",
]);

export const mayEndRequest = (event: string): boolean => ENDINGS.has(event);

/** A message to one person, and whether their quiet hours hold it back. */
interface Draft {
  message: Omit<PushMessage, "waiting">;
  urgent: boolean;
  /** When it loses its meaning. */
  until_ms: number | null;
}

interface Queued extends PushDelivery {
  device: PushDevice;
  message: PushMessage;
}

export class PushMessages implements PersonalMessages {
  private readonly app: ServiceApp;
  private readonly events: NotificationEvent[] = [];
  private ended = false;
  private working: Promise<void> | null = null;
  private closed = false;
  private readonly queues = new Map<string, ChannelQueue<Queued>>();
  private sealer: Promise<MessageSealer> | undefined;
  /** Withdrawals under way, by device and id. */
  private readonly leaving = new Set<string>();

  constructor(app: ServiceApp) {
    this.app = app;
  }

  notify(event: NotificationEvent): void {
    if (this.closed || pushOff(this.app) !== null) return;
    if (this.events.length >= MAX_EVENTS) this.events.shift();
    this.events.push(event);
    this.working ??= this.work();
  }

  /** Requests may have ended: withdraws notifications that no longer concern their person. */
  requestsEnded(): void {
    if (this.closed || this.ended || pushOff(this.app) !== null) return;
    this.ended = true;
    this.working ??= this.work();
  }

  async isHeard(): Promise<boolean> {
    if (pushOff(this.app) !== null) return false;
    return (await this.app.core.store.list("push_devices", { limit: 1 })).length > 0;
  }

  /** Sends what quiet hours held back, as one counted message to each device, once they are over. */
  async releaseHeld(): Promise<void> {
    if (pushOff(this.app) !== null) return;
    const { store, env } = this.app.core;
    for (const doc of await peopleWithDevices(this.app)) {
      const due = doc.devices.filter((one) => one.held && !isHeldBack(one, env.now()));
      const person = due.length === 0 ? null : await personToday(this.app, doc);
      if (person === null) continue;
      for (const device of due) {
        const mine = await store.transact(
          changeDeviceUnit(device.id, ({ held }) => (held ? { held: false } : null)),
        );
        const count = await this.countAsked(person);
        if (mine === null || count === 0) continue;
        const message = { type: "digest", id: "waiting", rule: null, agent: null, count } as const;
        await this.queue(person, mine.device, { message, urgent: false, until_ms: null });
      }
    }
  }

  async drain(deadline_ms: number): Promise<void> {
    this.closed = true;
    const sent = (this.working ?? Promise.resolve()).then(() =>
      Promise.all([...this.queues.values()].map((queue) => queue.idle())),
    );
    await settleWithin(sent, deadline_ms, this.app.core);
    let left = 0;
    for (const queue of this.queues.values()) left += queue.abandon();
    if (left > 0) this.app.log.warn("push messages not sent before the shutdown", { left });
  }

  private async work(): Promise<void> {
    // Let the caller's turn end first: no read of this may delay a decision.
    await Promise.resolve();
    while (this.events.length > 0 || this.ended) {
      const events = this.events.splice(0);
      const { ended } = this;
      this.ended = false;
      try {
        await this.tell(events, ended);
      } catch (error) {
        this.app.log.warn("push messages could not be created", { problem: messageOf(error) });
      }
    }
    this.working = null;
  }

  private async tell(events: readonly NotificationEvent[], ended: boolean): Promise<void> {
    const reader = new PendingReader(this.app);
    for (const doc of await peopleWithDevices(this.app)) {
      const concerned = events.length > 0 || doc.devices.some(({ shown }) => shown.length > 0);
      const person = concerned ? await personToday(this.app, doc) : null;
      if (person === null) continue;
      for (const event of events) {
        const draft = await this.draft(reader, person, event);
        if (draft === null) continue;
        for (const device of doc.devices) await this.orHold(person, device, draft);
      }
      if (ended) for (const device of doc.devices) await this.withdrawEnded(reader, person, device);
    }
  }

  /** What the event says to this person; null if it does not concern them. */
  private async draft(
    reader: PendingReader,
    person: PushPerson,
    event: NotificationEvent,
  ): Promise<Draft | null> {
    if (event.event === "approval_requested") return this.draftRequest(reader, person, event.id);
    if (event.event === "plan_proposed") {
      if (!(await reader.isPending(person, event.id))) return null;
      const { id, actor, expires_ms } = event;
      const plan = await reader.plan(id);
      const irreversible = plan !== undefined && plan.irreversible.length > 0;
      return {
        message: { type: "plan", id, rule: null, agent: this.clean(actor) },
        urgent: irreversible,
        until_ms: expires_ms,
      };
    }
    if (event.event === "approval_digest") {
      const count = (await reader.digest(person, event.actor)).length;
      if (count === 0) return null;
      const agent = this.clean(event.actor);
      const message = { type: "digest", id: digestId(event.actor), rule: null, agent, count } as const;
      return { message, urgent: false, until_ms: event.expires_ms };
    }
    return event.event === "alert" && event.kind === "break_glass" && hearsAlerts(person)
      ? alertDraft(event)
      : null;
  }

  private async draftRequest(reader: PendingReader, person: PushPerson, id: string): Promise<Draft | null> {
    const request = await reader.approval(id);
    if (request === undefined || !isAsked(this.app, person, request)) return null;
    const { rule, actor, status, expires_ms } = request;
    const escalated = status === "escalated" ? ({ escalated: true } as const) : {};
    return {
      message: { type: "approval", id, rule: this.clean(rule), agent: this.clean(actor), ...escalated },
      urgent: isIrreversible(request, this.app.core.rules().manifests),
      until_ms: expires_ms,
    };
  }

  private clean<T extends string | null>(name: T): T {
    return (name === null ? null : this.app.core.redact(name)) as T;
  }

  private async orHold(person: PushPerson, device: PushDevice, draft: Draft): Promise<void> {
    const { store, env } = this.app.core;
    if (draft.urgent || !isHeldBack(device, env.now())) return this.queue(person, device, draft);
    await store.transact(changeDeviceUnit(device.id, ({ held }) => (held ? null : { held: true })));
  }

  private async withdrawEnded(reader: PendingReader, person: PushPerson, device: PushDevice): Promise<void> {
    for (const id of device.shown) {
      const known = `${device.id} ${id}`;
      if (this.leaving.has(known) || (await this.stillShown(reader, person, id))) continue;
      this.leaving.add(known);
      const message = { type: "withdrawn", id, rule: null, agent: null } as const;
      await this.queue(person, device, { message, urgent: false, until_ms: null });
    }
  }

  private async stillShown(reader: PendingReader, person: PushPerson, id: string): Promise<boolean> {
    return id === "waiting" ? (await this.countAsked(person)) > 0 : reader.isPending(person, id);
  }

  /** Requests that wait for this person. */
  private async countAsked(person: PushPerson): Promise<number> {
    const { store } = this.app.core;
    const rows = await store.list("approvals", { tag: ["pending", "escalated"], limit: COUNTED });
    return rows.filter(({ doc }) => isAsked(this.app, person, doc)).length;
  }

  private async queue(person: PushPerson, device: PushDevice, draft: Draft): Promise<void> {
    const keys = await serverKeys(this.app);
    // The browser subscribed with another key: its push service refuses this one.
    if (device.server_key !== keys.public_key) return;
    this.sealer ??= loadSealer();
    const seal = await this.sealer;
    const message: PushMessage = {
      ...draft.message,
      waiting: await new PendingReader(this.app).waiting(person),
    };
    const sending = {
      keys,
      keep_s: this.keepFor(draft.until_ms),
      urgency: message.type === "withdrawn" ? ("normal" as const) : ("high" as const),
    };
    const render = () => [{ ...seal(message, device, sending), device, message }];
    this.queueOf(device).push({ event: message.type, render });
  }

  private keepFor(until_ms: number | null): number {
    const most = SERVICE_LIMITS.push_keep_s;
    if (until_ms === null) return most;
    return Math.max(0, Math.min(most, Math.floor((until_ms - this.app.core.env.now()) / 1_000)));
  }

  private queueOf(device: PushDevice): ChannelQueue<Queued> {
    const known = this.queues.get(device.id);
    if (known !== undefined) return known;
    const { core, log } = this.app;
    const send = (delivery: Queued, signal: AbortSignal) => this.send(delivery, signal);
    const made = new ChannelQueue<Queued>({
      env: core.env,
      log: log.child({ channel: "push", device: device.id }),
      send,
    });
    this.queues.set(device.id, made);
    void this.forgetWhenIdle(device.id, made);
    return made;
  }

  private async forgetWhenIdle(id: string, queue: ChannelQueue<Queued>): Promise<void> {
    await Promise.resolve();
    await queue.idle();
    if (this.queues.get(id) === queue && queue.stats().queued === 0) this.queues.delete(id);
  }

  private async send(queued: Queued, signal: AbortSignal): Promise<void> {
    const { device, message } = queued;
    const { store } = this.app.core;
    if (!(await this.isWanted(queued))) return void this.leaving.delete(`${device.id} ${message.id}`);
    try {
      await deliverPush(queued, { egress: this.app.pushEgress }, signal);
    } catch (error) {
      this.leaving.delete(`${device.id} ${message.id}`);
      if (!isGone(error)) {
        const last_error = messageOf(error);
        await store.transact(changeDeviceUnit(device.id, () => ({ last_error })));
        throw error;
      }
      await store.transact(forgetDeviceUnit(device.id, device.auth));
      return;
    }
    await this.delivered(queued);
  }

  /** Whether the device is still the person's, their credential still holds, and the request still waits for them. */
  private async isWanted({ device, message }: Queued): Promise<boolean> {
    const doc = await this.app.core.store.get("push_devices", deviceOwnerKey(device.id) ?? "");
    if (doc?.devices.some(({ id, auth }) => id === device.id && auth === device.auth) !== true) return false;
    const person = await personToday(this.app, doc);
    if (person === null) return false;
    return message.type === "withdrawn" || new PendingReader(this.app).isPending(person, message.id);
  }

  /** Notes what the device shows. A request that ended on the way is withdrawn at once. */
  private async delivered({ device, message }: Queued): Promise<void> {
    const { id, type } = message;
    const { store, env } = this.app.core;
    await store.transact(
      changeDeviceUnit(device.id, ({ shown }) => {
        const others = shown.filter((one) => one !== id);
        const now = type === "withdrawn" ? others : [...others, id].slice(-SERVICE_LIMITS.push_shown);
        return { shown: now, last_ok_ms: env.now(), last_error: null };
      }),
    );
    this.leaving.delete(`${device.id} ${id}`);
    if (type !== "withdrawn") this.requestsEnded();
  }
}

/** Limit on the requests that are looked at for a count. */
const COUNTED = 1_000;

const isHeldBack = ({ quiet }: PushDevice, now: number): boolean => quiet !== null && isQuiet(quiet, now);

/** The push service no longer knows the subscription. */
export const isGone = (error: unknown): boolean =>
  error instanceof DeliveryError && (error.status === 404 || error.status === 410);

function alertDraft({ id }: AlertRaised): Draft {
  return {
    message: { type: "alert", id: `alert:${id}`, rule: null, agent: null },
    urgent: true,
    until_ms: null,
  };
}
