/** Waits for an approver's decision in any process of the store. */
import { type ApprovalDoc, OPEN_APPROVAL_STATUSES } from "../../govern/approvals/approval.ts";
import type { CallerPrincipal } from "../../govern/roles.ts";
import { notFoundError } from "../../kernel/errors.ts";
import { withTimeout } from "../../kernel/timeout.ts";
import type { ServiceApp } from "../app.ts";
import { runWaitsOf } from "./run-watcher.ts";

interface DecisionWait {
  /** Id of the approval request. */
  id: string;
  wait_s: number;
  signal: AbortSignal;
  who: CallerPrincipal;
}

/** Waits until the request is decided or the time is over. Decisions by other processes count too. */
export async function awaitDecision(
  app: ServiceApp,
  wait: DecisionWait,
  visible: (approval: ApprovalDoc) => boolean | Promise<boolean>,
) {
  const release = wait.wait_s > 0 ? app.quotas?.hold("waiting", wait.who) : undefined;
  try {
    const approval = await whenDecided(app, wait);
    if (approval !== undefined && (await visible(approval))) return approval;
    throw notFoundError(`unknown approval request ${wait.id}`, "unknown_approval");
  } finally {
    release?.();
  }
}

async function whenDecided(
  app: ServiceApp,
  { id, wait_s, signal }: DecisionWait,
): Promise<ApprovalDoc | undefined> {
  const { store, env } = app.core;
  const until = env.elapsed() + wait_s * 1_000;
  const over = (approval: ApprovalDoc | undefined) =>
    approval === undefined ||
    !OPEN_APPROVAL_STATUSES.has(approval.status) ||
    signal.aborted ||
    env.elapsed() >= until;
  let approval = await store.get("approvals", id);
  while (!over(approval)) {
    const stop = new AbortController();
    const change = runWaitsOf(store).wait(approval!.run_id, AbortSignal.any([signal, stop.signal]));
    try {
      await change.ready;
      approval = await store.get("approvals", id);
      if (over(approval)) break;
      const left = Math.min(until - env.elapsed(), LOOK_AGAIN_MS);
      await withTimeout(change.woken, left, () => undefined, { env });
    } finally {
      stop.abort();
    }
    // The caller left, perhaps because this process stops and closes its store.
    if (signal.aborted) break;
    approval = await store.get("approvals", id);
  }
  return approval;
}

/** Longest wait between two reads, because requests also expire without an event. */
const LOOK_AGAIN_MS = 60_000;
