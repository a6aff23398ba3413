/** What a caller of the library catches. */
import type { Json } from "../kernel/json.ts";

export interface Offer {
  approval_id: string;
  args: Json;
}

/** The call was not allowed to run. */
export class BlockedError extends Error {
  readonly reasons: readonly string[];
  /** What the agent can do instead, where the policy says so. */
  readonly hints: readonly string[];
  /** The request that waits for a person, where one does. */
  readonly approval_id: string | null;

  /** What a person offered in place of a denied call: sent instead, it is approved. */
  readonly offer: Offer | null;

  constructor(reasons: readonly string[], hints: readonly string[] = [], offer: Offer | null = null) {
    super(`blocked: ${reasons.join("; ")}`);
    this.name = "BlockedError";
    this.reasons = reasons;
    this.hints = hints;
    this.approval_id = approvalIn(reasons);
    this.offer = offer;
  }
}

/** Thrown by a tool that does not know whether it took effect; the step is then `uncertain`. */
export class UncertainError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "UncertainError";
  }
}

const PENDING = /^approval required: request (apr_[0-9a-f-]{36}) is pending/;

export function approvalIn(reasons: readonly string[]): string | null {
  for (const reason of reasons) {
    const match = PENDING.exec(reason);
    if (match !== null) return match[1]!;
  }
  return null;
}
