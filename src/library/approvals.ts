/** Approval requests for library users: read them, wait for them, and decide them with an approver's credential. */
import { type ApprovalView, OPEN_APPROVAL_STATUSES, WITHDRAWN_NOTE } from "../govern/approvals/approval.ts";
import { tryDuration } from "../kernel/duration.ts";
import { systemEnv } from "../kernel/env.ts";
import { invalidError, TooManyError } from "../kernel/errors.ts";
import type { JsonValue } from "../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../kernel/limits.ts";
import type { CounterOffer } from "./errors.ts";

/** A duration such as `10m`, or a number of seconds. */
export type WaitTime = string | number;

/** Options for approving or denying a request. */
export interface DecideOptions {
  /** Reason for the decision. The ledger records it and the agent sees it. */
  note?: string;
  /** Fails the decision unless the request's card still has this hash. */
  card_hash?: string;
  /** API key or token of the approver. Default: the credential of the connection. */
  key?: string;
}

/**
 * Approval requests, for code that waits for them or decides them.
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
export interface ApprovalRequests {
  /** Returns the request as it is now. */
  get(id: string): Promise<ApprovalView>;
  /** Returns the request as soon as it is decided, or undecided once the time has passed. */
  wait(id: string, options?: { for?: WaitTime; signal?: AbortSignal }): Promise<ApprovalView>;
  /** Approves the request as the owner of `key`. The agent can then make exactly this call, once. */
  approve(id: string, options?: DecideOptions): Promise<ApprovalView>;
  /** Denies the request. The agent sees the note. */
  deny(id: string, options?: DecideOptions): Promise<ApprovalView>;
}

/** Reads a request, and waits up to `wait` seconds for its decision. */
export type ReadApproval = (id: string, wait: number, signal?: AbortSignal) => Promise<OfferedApproval>;

/** An approval request, with the approver's counter-proposal if the approver denied it and made one. */
export type OfferedApproval = ApprovalView & { offer?: { approval_id: string; args?: unknown } };

export function waitMs(wait: WaitTime, what: string): number {
  const ms = typeof wait === "number" ? wait * 1_000 : tryDuration(wait);
  if (ms === undefined || !(ms >= 0)) throw invalidError(`${what}: a duration such as 10m, or seconds`);
  return ms;
}

const DEFAULT_WAIT = "10m";

/** Waits for a decision in steps, because a server limits the length and the number of waiting requests. */
export async function waitFor(
  look: ReadApproval,
  id: string,
  { for: time = DEFAULT_WAIT, signal }: { for?: WaitTime; signal?: AbortSignal | undefined } = {},
): Promise<OfferedApproval> {
  const until = performance.now() + waitMs(time, "for");
  for (;;) {
    signal?.throwIfAborted();
    const left_s = Math.max(0, Math.ceil((until - performance.now()) / 1_000));
    try {
      const approval = await look(id, Math.min(left_s, WAIT_STEP_S), signal);
      if (!OPEN_APPROVAL_STATUSES.has(approval.status) || performance.now() >= until) return approval;
    } catch (error) {
      if (!(error instanceof TooManyError) || left_s === 0) throw error;
      await systemEnv.sleep(Math.min(error.retry_after_s, left_s) * 1_000, signal);
    }
  }
}

/** Below the usual timeouts of clients and proxies. */
const WAIT_STEP_S = Math.min(25, SERVICE_LIMITS.approval_wait_s);

/** Explains to the caller why a call is not made after its request ended. */
export function endedReason({ id, status, decided_by, note }: OfferedApproval): string {
  if (status === "consumed") return `approval ${id} was used already, so this call is not repeated`;
  if (status !== "denied")
    return `approval ${id} is ${note === WITHDRAWN_NOTE ? WITHDRAWN_NOTE : status}: this call is not made`;
  return `denied by ${decided_by ?? "a person"}${note === null || note === "" ? "" : `: ${note}`}`;
}

export function offerOf({ offer }: Pick<OfferedApproval, "offer">): CounterOffer | null {
  return offer?.args == null ? null : { approval_id: offer.approval_id, args: offer.args as JsonValue };
}
