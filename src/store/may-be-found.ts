/** The one refusal after which a request may turn out to have been carried out; it says so, and how to find out. */
import { SvcError } from "../kernel/errors.ts";

export class MayBeFound extends SvcError {
  constructor(what: string, options?: { cause?: unknown }) {
    super(
      "unavailable",
      `ledger unavailable: ${what}; the request may be found there: look at the run or the ledger before asking again, or ask again under the same Idempotency-Key`,
      { ...options, cause_code: "may_be_recorded" },
    );
    this.name = "MayBeFound";
  }
}

export function mayBeFound(what: string, cause?: unknown): MayBeFound {
  return new MayBeFound(what, { cause });
}
