/** Applies time-based changes: requests escalate and expire, plans end, stored replies are deleted. */
import {
  type ApprovalDoc,
  approvalTags,
  LIVE_APPROVAL_STATUSES,
  OPEN_APPROVAL_STATUSES,
} from "../../govern/approvals/approval.ts";
import { expireOrEscalateUnit } from "../../govern/approvals/decide-request.ts";
import { expirePlanUnit } from "../../govern/plans/decide-plan.ts";
import { digestRequests } from "../../govern/plans/plan.ts";
import { isProbe } from "../../govern/roles.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { announceRecords, type ServiceApp } from "../app.ts";
import { inDigest } from "./approval-digest.ts";
import { ExpiryQueue, openRows } from "./expiry-queue.ts";

const PAGE = 200;
const OPEN = [...OPEN_APPROVAL_STATUSES];
/** How often digested requests are read again while no new ones arrive. */
const DIGEST_MS = 5_000;

interface Swept {
  /** Requests that were escalated in this round. */
  escalated: ApprovalDoc[];
  /** Waiting requests for a digest; empty if it is too early to read them again. */
  together: ApprovalDoc[];
}

export class ExpiryJob {
  private readonly app: ServiceApp;
  private readonly requests = new ExpiryQueue("approvals", approvalTags([...OPEN, "approved"]), dueAt);
  private readonly plans = new ExpiryQueue("plans", ["pending", "approved"], ({ expires_ms }) => expires_ms);
  private flooded = false;
  private digest_ms = Number.NEGATIVE_INFINITY;

  constructor(app: ServiceApp) {
    this.app = app;
  }

  /** Escalates or expires the requests that are due. */
  async approvals(): Promise<Swept> {
    const { store, env, listeners } = this.app.core;
    const escalated: ApprovalDoc[] = [];
    let news = (await this.requests.fresh(store, env.now())).some(inDigest);
    for (const id of this.requests.due(env.now())) {
      const before = await store.get("approvals", id);
      const aged = isAlive(before) ? await store.transact(expireOrEscalateUnit(this.app.core, id)) : null;
      const now = aged?.approval ?? before;
      if (isAlive(now)) this.requests.put(id, now);
      else this.requests.drop(id);
      if (aged === null) continue;
      announceRecords(listeners, aged.records);
      if (aged.approval.status !== "escalated" || isProbe(aged.approval.internal.principal)) continue;
      if (inDigest(aged.approval)) news = true;
      else escalated.push(aged.approval);
    }
    return { escalated, together: await this.together(news) };
  }

  private async together(news: boolean): Promise<ApprovalDoc[]> {
    const { store, env } = this.app.core;
    if (news) this.flooded = true;
    else if (!this.flooded || env.now() - this.digest_ms < DIGEST_MS) return [];
    this.digest_ms = env.now();
    const rows = await openRows(store, "approvals", OPEN);
    const plans = await openRows(store, "plans", ["pending"]);
    const together = [
      ...rows.map(({ doc }) => doc).filter(inDigest),
      ...plans.flatMap(({ doc }) => digestRequests(doc)),
    ];
    this.flooded = together.length > 0;
    return together;
  }

  /** Ends plans that have expired. */
  async endPlans(): Promise<void> {
    const { store, env, listeners } = this.app.core;
    const fresh = await this.plans.fresh(store, env.now());
    if (fresh.some((plan) => digestRequests(plan).length > 0)) this.flooded = true;
    for (const id of this.plans.due(env.now())) {
      const aged = await store.transact(expirePlanUnit(this.app.core, id));
      this.plans.drop(id);
      if (aged !== null) announceRecords(listeners, aged.records);
    }
  }
}

function isAlive(doc: ApprovalDoc | undefined): doc is ApprovalDoc {
  return doc !== undefined && LIVE_APPROVAL_STATUSES.has(doc.status);
}

/** Time of the next change: the request's escalation or its expiry. */
function dueAt({ status, requested_ms, expires_ms, internal: { escalate_after_ms } }: ApprovalDoc): number {
  if (status !== "pending" || escalate_after_ms === null) return expires_ms;
  return Math.min(expires_ms, requested_ms + escalate_after_ms);
}

export async function deleteOldReplies(app: ServiceApp): Promise<void> {
  const { store, env } = app.core;
  const rows = await store.list("replies", {
    to: env.now() - SERVICE_LIMITS.idempotency_keep_ms,
    limit: PAGE,
  });
  if (rows.length === 0) return;
  await store.transact({
    run(tx) {
      for (const { key } of rows) tx.delete("replies", key);
    },
  });
}
