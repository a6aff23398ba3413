/** What a caller of the library catches. */
import type { Json } from "../kernel/json.ts";
import { approvalIn } from "../model/approval.ts";

/** Other arguments that a person offered when they denied a call; with them the call is approved. */
export interface Offer {
  approval_id: string;
  args: Json;
}

/** The call was not allowed, and was not made. */
export class BlockedError extends Error {
  /** Why, one sentence each, fit for the agent. */
  readonly reasons: readonly string[];
  /** What the agent can do instead, where the policy says so. */
  readonly hints: readonly string[];
  /** The request that a person decides or has decided, where there is one. */
  readonly approval_id: string | null;

  /** What a person offered in place of a denied call: sent instead, it is approved. */
  readonly offer: Offer | null;

  constructor(
    reasons: readonly string[],
    hints: readonly string[] = [],
    offer: Offer | null = null,
    approval_id: string | null = approvalIn(reasons),
  ) {
    super(`blocked: ${reasons.join("; ")}`);
    this.name = "BlockedError";
    this.reasons = reasons;
    this.hints = hints;
    this.approval_id = approval_id;
    this.offer = offer;
  }
}

/**
 * Thrown by a tool that does not know whether it took effect; the step is then `uncertain`, and a person settles it.
 *
 * @example
 * ```ts
 * import { UncertainError } from "takeback";
 *
 * async function refund(charge, amount) {
 *   try {
 *     return await payments.refund(charge, amount);
 *   } catch (error) {
 *     if (error.code === "ETIMEDOUT") throw new UncertainError("payments did not answer", { cause: error });
 *     throw error;
 *   }
 * }
 * const args = { charge: "ch_3", amount: 20 };
 * await run.call({ tool: "payments.refund", args, reason: "damaged" }, () => refund(args.charge, args.amount));
 * ```
 */
export class UncertainError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "UncertainError";
  }
}
