/**
 * Decides which alert messages to send: one when an alert is raised, reminders while it is active, and one when it
 * clears. The sent messages are a stored document that changes in a transaction, so exactly one process sends each
 * message.
 */

import type { EngineCore } from "../govern/core.ts";
import type { StoreTx } from "../govern/port/store.ts";
import { asJson, fromJson } from "../kernel/json/json.ts";
import { type AlertGroup, groupAlerts, groupMessage } from "./groups.ts";
import type { ActiveAlert } from "./kinds.ts";

const KEY = "alerts_sent";

/** By group. `count` is missing in entries of older versions. */
type Sent = Record<string, { alert: ActiveAlert; sent_ms: number; count?: number }>;

type AlertMessage =
  | { what: "raised" | "reminder"; alert: ActiveAlert }
  | { what: "resolved"; alert: ActiveAlert; resolved_ms: number };

/** Compares the active alerts with the sent messages and returns the messages for this process to send. */
export async function dueAlertMessages(
  core: EngineCore,
  active: readonly ActiveAlert[],
  remind_ms: number,
): Promise<AlertMessage[]> {
  // Check outside a transaction first: most rounds have nothing to send.
  const known = fromJson<Sent>((await core.store.get("meta", KEY)) ?? {});
  if (compare(known, active, core.env.now(), remind_ms).messages.length === 0) return [];
  return core.store.transact({
    needs: [["meta", KEY]],
    run(tx: StoreTx) {
      const sent = fromJson<Sent>(tx.get("meta", KEY) ?? {});
      const { messages, next } = compare(sent, active, core.env.now(), remind_ms);
      tx.put("meta", KEY, asJson(next));
      return messages;
    },
  });
}

function compare(
  sent: Sent,
  active: readonly ActiveAlert[],
  now: number,
  remind_ms: number,
): { messages: AlertMessage[]; next: Sent } {
  const messages: AlertMessage[] = [];
  const next: Sent = {};
  const kept = new Set<string>();
  for (const group of groupAlerts(active)) {
    const key = sentKey(sent, group);
    const before = key === undefined ? undefined : sent[key];
    if (key !== undefined) kept.add(key);
    const count = group.alerts.length;
    // A lasting line waits for its reminder. A further critical alert does not.
    const grew = group.first.severity === "critical" && count > (before?.count ?? 1);
    const late = before !== undefined && now - before.sent_ms >= remind_ms;
    const what = before === undefined || grew ? "raised" : late ? "reminder" : null;
    const alert = before?.alert ?? group.first;
    if (what !== null) messages.push({ what, alert: asOneLine(group, alert.id) });
    next[group.group] = { alert, sent_ms: what === null ? before!.sent_ms : now, count };
  }
  for (const [key, { alert }] of Object.entries(sent)) {
    if (!kept.has(key)) messages.push({ what: "resolved", alert, resolved_ms: now });
  }
  return { messages, next };
}

/** Earlier versions stored each alert under its id. */
function sentKey(sent: Sent, { group, alerts }: AlertGroup<ActiveAlert>): string | undefined {
  return [group, ...alerts.map(({ id }) => id)].find((key) => Object.hasOwn(sent, key));
}

/** The id of a line never changes, so that its resolution closes what it opened elsewhere. */
function asOneLine(group: AlertGroup<ActiveAlert>, id: string): ActiveAlert {
  const { first, alerts } = group;
  if (alerts.length === 1) return { ...first, id };
  return { ...first, id, message: groupMessage(group), run_id: null, step: null };
}
