/**
 * What people are told of a flood: one digest a window for each actor. What was told is a document of the store and
 * changes in one unit, so of several processes exactly one sends each digest, and a request is in one even if the
 * process that opened it has ended.
 */
import type { Core } from "../../engine/core.ts";
import type { Json } from "../../kernel/json.ts";
import { type ApprovalDoc, isIrreversible, OPEN_APPROVAL } from "../../model/approval.ts";
import { approvalDigest, approvalRequested, type NotificationEvent } from "../../notify/events.ts";

const KEY = "approval_digests";

interface Told {
  actor: string;
  sent_ms: number;
  /** Requests that people know of, as they were then. */
  told: string[];
}

export const inDigest = ({ status, internal }: ApprovalDoc): boolean =>
  internal.in_digest === true && OPEN_APPROVAL.has(status);

/** A request that was passed on to others is news once more. */
const markOf = ({ id, status }: ApprovalDoc): string => (status === "escalated" ? `${id} escalated` : id);

/** The messages that this process is to send now, of requests that wait and are told together. */
export async function dueDigests(core: Core, waiting: readonly ApprovalDoc[]): Promise<NotificationEvent[]> {
  if (waiting.length === 0) return [];
  // Asked outside a unit first: most rounds have nothing to say and need not write.
  const known = ((await core.store.get("meta", KEY)) ?? []) as unknown as Told[];
  if (compare(core, known, waiting).events.length === 0) return [];
  return core.store.transact({
    needs: [["meta", KEY]],
    run(tx) {
      const { events, next } = compare(core, (tx.get("meta", KEY) ?? []) as unknown as Told[], waiting);
      if (events.length > 0) tx.put("meta", KEY, next as unknown as Json);
      return events;
    },
  });
}

function compare(core: Core, known: readonly Told[], waiting: readonly ApprovalDoc[]) {
  const now = core.env.now();
  const { manifests, policy } = core.rules();
  // Without the setting, what was held back is told at once.
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
    // A manifest may have become irreversible meanwhile; such a call is never only in a digest.
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
