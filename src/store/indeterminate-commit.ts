/** The error for an unknown commit outcome. Its message says how to find out. */
import { SvcError } from "../kernel/errors.ts";

export class IndeterminateCommitError extends SvcError {
  constructor(what: string, options?: { cause?: unknown }) {
    super(
      "unavailable",
      `ledger unavailable: ${what}; the request may have been recorded. Check the run before you retry, or retry with the same Idempotency-Key`,
      { ...options, cause_code: "may_be_recorded" },
    );
    this.name = "MayBeFound";
  }
}

export function indeterminateCommit(what: string, cause?: unknown): IndeterminateCommitError {
  return new IndeterminateCommitError(what, { cause });
}
