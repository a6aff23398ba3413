/** Errors that library users catch. */
import { pendingApprovalId } from "../govern/approvals/approval.ts";
import type { JsonValue } from "../kernel/json/json.ts";

/** A counter-proposal: an approver denied the call and approved it with other arguments. */
export interface CounterOffer {
  approval_id: string;
  args: JsonValue;
}

/** Thrown if a call is not allowed. The call was not made. */
export class BlockedError extends Error {
  /** Reasons for the block, one sentence each, safe to show to the agent. */
  readonly reasons: readonly string[];
  /** Alternatives for the agent that the policy suggests. */
  readonly hints: readonly string[];
  /** The approval request of this call, or null if it has none. */
  readonly approval_id: string | null;

  /** The approver's counter-proposal. A call with these arguments is approved. */
  readonly offer: CounterOffer | null;

  constructor(
    reasons: readonly string[],
    hints: readonly string[] = [],
    offer: CounterOffer | null = null,
    approval_id: string | null = pendingApprovalId(reasons),
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
 * Throw this from a tool that does not know whether it took effect. The step is then `uncertain` until an operator
 * resolves it.
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
