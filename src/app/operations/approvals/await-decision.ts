/** Waiting for a person's decision, whichever process of the store takes it. */
import { within } from "../../../kernel/deadline.ts";
import { notFound } from "../../../kernel/errors.ts";
import { type ApprovalDoc, OPEN_APPROVAL } from "../../../model/approval.ts";
import type { Principal } from "../../../model/roles.ts";
import type { App } from "../../app.ts";
import { runWaitsOf } from "./run-waits.ts";

interface DecisionWait {
  /** The request that is waited for. */
  id: string;
  wait_s: number;
  signal: AbortSignal;
  who: Principal;
}

/** Waits until the request is decided or the time is over; sees decisions of every process of the store. */
export async function awaitDecision(
  app: App,
  wait: DecisionWait,
  visible: (approval: ApprovalDoc) => boolean | Promise<boolean>,
) {
  const release = wait.wait_s > 0 ? app.quotas?.hold("waiting", wait.who) : undefined;
  try {
    const approval = await whenDecided(app, wait);
    if (approval !== undefined && (await visible(approval))) return approval;
    throw notFound(`unknown approval request ${wait.id}`, "unknown_approval");
  } finally {
    release?.();
  }
}

async function whenDecided(app: App, { id, wait_s, signal }: DecisionWait): Promise<ApprovalDoc | undefined> {
  const { store, env } = app.core;
  const until = env.elapsed() + wait_s * 1_000;
  const over = (approval: ApprovalDoc | undefined) =>
    approval === undefined || !OPEN_APPROVAL.has(approval.status) || signal.aborted || env.elapsed() >= until;
  let approval = await store.get("approvals", id);
  while (!over(approval)) {
    const stop = new AbortController();
    const change = runWaitsOf(store).wait(approval!.run_id, AbortSignal.any([signal, stop.signal]));
    try {
      await change.ready;
      approval = await store.get("approvals", id);
      if (over(approval)) break;
      const left = Math.min(until - env.elapsed(), LOOK_AGAIN_MS);
      await within(change.woken, left, () => undefined, { env });
    } finally {
      stop.abort();
    }
    approval = await store.get("approvals", id);
  }
  return approval;
}

/** Requests end by time alone, too; whoever waits looks at least this often. */
const LOOK_AGAIN_MS = 60_000;
