/** What time alone changes: requests escalate and expire, remembered answers are forgotten. */
import { ageUnit } from "../engine/approvals/decide-request.ts";
import { agePlanUnit } from "../engine/plans/decide-plan.ts";
import { LIMITS } from "../kernel/limits.ts";
import type { ApprovalDoc } from "../model/approval.ts";
import { type App, announce } from "./app.ts";
import { inDigest } from "./flood-digest.ts";

const PAGE = 200;

/** Ages every request that is open or approved; answers those that were escalated just now, and those told together. */
export async function sweepApprovals(
  app: App,
): Promise<{ escalated: ApprovalDoc[]; together: ApprovalDoc[] }> {
  const { store, env, listeners } = app.core;
  const escalated: ApprovalDoc[] = [];
  const together: ApprovalDoc[] = [];
  let after: { sort: number; key: string } | undefined;
  for (;;) {
    const rows = await store.list("approvals", {
      tag: ["pending", "escalated", "approved"],
      limit: PAGE,
      after,
    });
    for (const { doc } of rows) {
      const aged = due(doc, env.now()) ? await store.transact(ageUnit(app.core, doc.id)) : null;
      const now = aged?.approval ?? doc;
      if (inDigest(now)) together.push(now);
      if (aged === null) continue;
      announce(listeners, aged.records);
      if (now.status === "escalated" && !inDigest(now)) escalated.push(now);
    }
    const last = rows[rows.length - 1];
    if (rows.length < PAGE || last === undefined) return { escalated, together };
    after = { sort: last.sort, key: last.key };
  }
}

function due(doc: ApprovalDoc, now: number): boolean {
  if (now >= doc.expires_ms) return true;
  const { escalate_after_ms } = doc.internal;
  return (
    doc.status === "pending" && escalate_after_ms !== null && now >= doc.requested_ms + escalate_after_ms
  );
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

/** Ends plans whose time is over. */
export async function sweepPlans(app: App): Promise<void> {
  const { store, env, listeners } = app.core;
  let after: { sort: number; key: string } | undefined;
  for (;;) {
    const rows = await store.list("plans", { tag: ["pending", "approved"], limit: PAGE, after });
    for (const { doc } of rows) {
      if (env.now() < doc.expires_ms) continue;
      const aged = await store.transact(agePlanUnit(app.core, doc.id));
      if (aged !== null) announce(listeners, aged.records);
    }
    const last = rows[rows.length - 1];
    if (rows.length < PAGE || last === undefined) return;
    after = { sort: last.sort, key: last.key };
  }
}
