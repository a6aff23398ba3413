/**
 * Digest notifications for bursts of approval requests: one per actor and window. The last digest is a stored document
 * that changes in a transaction. So exactly one process sends each digest, and no request is lost when the process that
 * opened it ends.
 */

import { type ApprovalDoc, isIrreversible, OPEN_APPROVAL_STATUSES } from "../../govern/approvals/approval.ts";
import type { EngineCore } from "../../govern/core.ts";
import { asJson, fromJson } from "../../kernel/json/json.ts";
import { approvalDigest, approvalRequested, type NotificationEvent } from "../../notify/events.ts";

const KEY = "approval_digests";

interface Told {
  actor: string;
  sent_ms: number;
  /** Requests in the last digest, with their state at that time. */
  told: string[];
}

export const inDigest = ({ status, internal }: ApprovalDoc): boolean =>
  internal.in_digest === true && OPEN_APPROVAL_STATUSES.has(status);

/** A request that has been escalated is reported again. */
const markOf = ({ id, status }: ApprovalDoc): string => (status === "escalated" ? `${id} escalated` : id);

/** Returns the messages to send now for the waiting requests that are digested. */
export async function dueDigests(
  core: EngineCore,
  waiting: readonly ApprovalDoc[],
): Promise<NotificationEvent[]> {
  if (waiting.length === 0) return [];
  // Check outside a transaction first: most rounds have nothing to send.
  const known = fromJson<Told[]>((await core.store.get("meta", KEY)) ?? []);
  if (compare(core, known, waiting).events.length === 0) return [];
  return core.store.transact({
    needs: [["meta", KEY]],
    run(tx) {
      const { events, next } = compare(core, fromJson<Told[]>(tx.get("meta", KEY) ?? []), waiting);
      if (events.length > 0) tx.put("meta", KEY, asJson(next));
      return events;
    },
  });
}

function compare(core: EngineCore, known: readonly Told[], waiting: readonly ApprovalDoc[]) {
  const now = core.env.now();
  const { manifests, policy } = core.rules();
  // If the setting is gone, send the withheld requests at once.
  const window_ms = policy.approvals.flood?.window_ms ?? 0;
  const events: NotificationEvent[] = [];
  const next = new Map<string, Told>();
  for (const one of known) if (now - one.sent_ms < window_ms) next.set(one.actor, one);
  const before = new Map(known.map((one) => [one.actor, one]));
  for (const [actor, requests] of byActor(waiting)) {
    const last = before.get(actor);
    const told = new Set(last?.told);
    const news = requests.filter((one) => !told.has(markOf(one)));
    const due = news.length > 0 && (last === undefined || now - last.sent_ms >= window_ms);
    if (last !== undefined && !due) next.set(actor, last);
    if (!due) continue;
    next.set(actor, { actor, sent_ms: now, told: requests.map(markOf) });
    // If the manifest has become irreversible since, the call also gets its own message.
    const alone = news.filter((one) => isIrreversible(one, manifests));
    events.push(...alone.map(approvalRequested));
    const together = requests.filter((one) => !alone.includes(one));
    if (news.length > alone.length) events.push(approvalDigest(actor, together, window_ms));
  }
  return { events, next: [...next.values()] };
}

function byActor(requests: readonly ApprovalDoc[]): Map<string, ApprovalDoc[]> {
  const found = new Map<string, ApprovalDoc[]>();
  for (const one of requests) {
    const same = found.get(one.actor);
    if (same === undefined) found.set(one.actor, [one]);
    else same.push(one);
  }
  return found;
}
