/** Requests for approval as code holds them: reading, waiting, and deciding with the person's own credential. */
import { tryDuration } from "../kernel/duration.ts";
import { systemEnv } from "../kernel/env.ts";
import { invalid, TooMany } from "../kernel/errors.ts";
import type { Json } from "../kernel/json.ts";
import { LIMITS } from "../kernel/limits.ts";
import { type ApprovalView, OPEN_APPROVAL, WITHDRAWN } from "../model/approval.ts";
import type { Offer } from "./errors.ts";

/** A duration such as `10m`, or seconds. */
export type Wait = string | number;

/** How a decision is made, and by whom. */
export interface DecideOptions {
  /** Why, on the ledger and for the agent. */
  note?: string;
  /** The decision holds only if the request's card still has this hash. */
  card_hash?: string;
  /** The deciding person's own API key or token; without it the decision is that of the connection's credential. */
  key?: string;
}

/**
 * Requests for approval, from the side of those who wait or decide.
 *
 * @example
 * ```ts
 * import { BlockedError } from "takeback";
 *
 * const refund = { tool: "payments.refund", args: { charge: "ch_2", amount: 900 }, reason: "order returned" };
 * const blocked = await run.call(refund, () => payments.refund("ch_2", 900)).catch((error) => error);
 * if (blocked instanceof BlockedError && blocked.approval_id !== null) {
 *   await svc.approvals.approve(blocked.approval_id, { key: annsKey, note: "saw the parcel" });
 *   await run.call(refund, () => payments.refund("ch_2", 900)); // the same call, now approved, once
 * }
 * ```
 */
export interface Approvals {
  /** The request as it is now. */
  get(id: string): Promise<ApprovalView>;
  /** Answers as soon as it is decided, or with the request as it is once the time is over. */
  wait(id: string, options?: { for?: Wait; signal?: AbortSignal }): Promise<ApprovalView>;
  /** Says yes, as the person of `key`; whoever asked may then make this very call, once. */
  approve(id: string, options?: DecideOptions): Promise<ApprovalView>;
  /** Says no; the agent is told the note. */
  deny(id: string, options?: DecideOptions): Promise<ApprovalView>;
}

/** The request after at most so many seconds of waiting for its decision. */
export type LookAtApproval = (id: string, wait: number, signal?: AbortSignal) => Promise<OfferedApproval>;

/** A request of a run, with what a person offered in its place when they denied it. */
export type OfferedApproval = ApprovalView & { offer?: { approval_id: string; args?: unknown } };

export function waitMs(wait: Wait, what: string): number {
  const ms = typeof wait === "number" ? wait * 1_000 : tryDuration(wait);
  if (ms === undefined || !(ms >= 0)) throw invalid(`${what}: a duration such as 10m, or seconds`);
  return ms;
}

const DEFAULT_WAIT = "10m";

/** A server holds one question for a minute at most, and may hold too many already; whoever waits longer asks again. */
export async function waitFor(
  look: LookAtApproval,
  id: string,
  { for: time = DEFAULT_WAIT, signal }: { for?: Wait; signal?: AbortSignal | undefined } = {},
): Promise<OfferedApproval> {
  const until = performance.now() + waitMs(time, "for");
  for (;;) {
    signal?.throwIfAborted();
    const left_s = Math.max(0, Math.ceil((until - performance.now()) / 1_000));
    try {
      const approval = await look(id, Math.min(left_s, WAIT_STEP_S), signal);
      if (!OPEN_APPROVAL.has(approval.status) || performance.now() >= until) return approval;
    } catch (error) {
      if (!(error instanceof TooMany) || left_s === 0) throw error;
      await systemEnv.sleep(Math.min(error.retry_after_s, left_s) * 1_000, signal);
    }
  }
}

/** Below the usual limits of clients and proxies. */
const WAIT_STEP_S = Math.min(25, LIMITS.approval_wait_s);

/** Why a call whose request has ended is not made, as it is told to whoever asked for it. */
export function endedReason({ id, status, decided_by, note }: OfferedApproval): string {
  if (status === "consumed") return `approval ${id} was used already: this call is not made again`;
  if (status !== "denied")
    return `approval ${id} is ${note === WITHDRAWN ? WITHDRAWN : status}: this call is not made`;
  return `denied by ${decided_by ?? "a person"}${note === null || note === "" ? "" : `: ${note}`}`;
}

export function offerOf({ offer }: Pick<OfferedApproval, "offer">): Offer | null {
  return offer?.args == null ? null : { approval_id: offer.approval_id, args: offer.args as Json };
}
