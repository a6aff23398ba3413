/** What time alone changes: requests escalate and expire, plans end, remembered answers are forgotten. */
import { ageUnit } from "../../engine/approvals/decide-request.ts";
import { agePlanUnit } from "../../engine/plans/decide-plan.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { type ApprovalDoc, everyTag, OPEN_APPROVAL } from "../../model/approval.ts";
import { toldTogether } from "../../model/plan.ts";
import { isProbe } from "../../model/roles.ts";
import { type App, announce } from "../app.ts";
import { Due, openRows } from "./due.ts";
import { inDigest } from "./flood-digest.ts";

const PAGE = 200;
const OPEN = [...OPEN_APPROVAL];
/** How often those that are told together are read again while there is nothing new among them. */
const DIGEST_MS = 5_000;

interface Swept {
  /** Those that were passed on to others just now. */
  escalated: ApprovalDoc[];
  /** Those that wait and are told together, where it is time to look at them. */
  together: ApprovalDoc[];
}

export class Sweep {
  private readonly app: App;
  private readonly requests = new Due("approvals", everyTag([...OPEN, "approved"]), dueAt);
  private readonly plans = new Due("plans", ["pending", "approved"], ({ expires_ms }) => expires_ms);
  private flooded = false;
  private digest_ms = Number.NEGATIVE_INFINITY;

  constructor(app: App) {
    this.app = app;
  }

  /** Ages the requests whose time has come. */
  async approvals(): Promise<Swept> {
    const { store, env, listeners } = this.app.core;
    const escalated: ApprovalDoc[] = [];
    let news = (await this.requests.fresh(store, env.now())).some(inDigest);
    for (const id of this.requests.due(env.now())) {
      const before = await store.get("approvals", id);
      const aged = isAlive(before) ? await store.transact(ageUnit(this.app.core, id)) : null;
      const now = aged?.approval ?? before;
      if (isAlive(now)) this.requests.put(id, now);
      else this.requests.drop(id);
      if (aged === null) continue;
      announce(listeners, aged.records);
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
      ...plans.flatMap(({ doc }) => toldTogether(doc)),
    ];
    this.flooded = together.length > 0;
    return together;
  }

  /** Ends plans whose time is over. */
  async endPlans(): Promise<void> {
    const { store, env, listeners } = this.app.core;
    const fresh = await this.plans.fresh(store, env.now());
    if (fresh.some((plan) => toldTogether(plan).length > 0)) this.flooded = true;
    for (const id of this.plans.due(env.now())) {
      const aged = await store.transact(agePlanUnit(this.app.core, id));
      this.plans.drop(id);
      if (aged !== null) announce(listeners, aged.records);
    }
  }
}

function isAlive(doc: ApprovalDoc | undefined): doc is ApprovalDoc {
  return doc !== undefined && (OPEN_APPROVAL.has(doc.status) || doc.status === "approved");
}

/** When time changes it next: it is passed on to others, or its own time is over. */
function dueAt({ status, requested_ms, expires_ms, internal: { escalate_after_ms } }: ApprovalDoc): number {
  if (status !== "pending" || escalate_after_ms === null) return expires_ms;
  return Math.min(expires_ms, requested_ms + escalate_after_ms);
}

export async function forgetReplies(app: App): Promise<void> {
  const { store, env } = app.core;
  const rows = await store.list("replies", { to: env.now() - LIMITS.idempotency_keep_ms, limit: PAGE });
  if (rows.length === 0) return;
  await store.transact({
    run(tx) {
      for (const { key } of rows) tx.delete("replies", key);
    },
  });
}
