/**
 * Sends alerts: once when raised, again while they last, and once when they clear. What was sent is a document
 * of the store and changes in one unit, so of several processes exactly one sends each message.
 */
import type { Core } from "../engine/core.ts";
import type { Json } from "../kernel/json.ts";
import type { Tx } from "../port/store.ts";
import type { Alert } from "./kinds.ts";

const KEY = "alerts_sent";

type Sent = Record<string, { alert: Alert; sent_ms: number }>;

type AlertMessage =
  | { what: "raised" | "reminder"; alert: Alert }
  | { what: "resolved"; alert: Alert; resolved_ms: number };

/** Compares what stands now with what was sent, and answers what this process is to send. */
export async function dueMessages(
  core: Core,
  standing: readonly Alert[],
  remind_ms: number,
): Promise<AlertMessage[]> {
  // Asked outside a unit first: most rounds have nothing to say and need not write.
  const known = ((await core.store.get("meta", KEY)) ?? {}) as unknown as Sent;
  if (compare(known, standing, core.env.now(), remind_ms).messages.length === 0) return [];
  return core.store.transact({
    needs: [["meta", KEY]],
    run(tx: Tx) {
      const sent = (tx.get("meta", KEY) ?? {}) as unknown as Sent;
      const { messages, next } = compare(sent, standing, core.env.now(), remind_ms);
      tx.put("meta", KEY, next as unknown as Json);
      return messages;
    },
  });
}

function compare(
  sent: Sent,
  standing: readonly Alert[],
  now: number,
  remind_ms: number,
): { messages: AlertMessage[]; next: Sent } {
  const messages: AlertMessage[] = [];
  const next: Sent = {};
  for (const alert of standing) {
    const before = Object.hasOwn(sent, alert.id) ? sent[alert.id] : undefined;
    const what = before === undefined ? "raised" : now - before.sent_ms >= remind_ms ? "reminder" : null;
    if (what !== null) messages.push({ what, alert });
    next[alert.id] = { alert: before?.alert ?? alert, sent_ms: what === null ? before!.sent_ms : now };
  }
  for (const [id, { alert }] of Object.entries(sent)) {
    if (!Object.hasOwn(next, id)) messages.push({ what: "resolved", alert, resolved_ms: now });
  }
  return { messages, next };
}
