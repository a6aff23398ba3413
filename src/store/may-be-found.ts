/** The one refusal after which a request may turn out to have been carried out; it says so, and how to find out. */
import { SvcError } from "../kernel/errors.ts";

export function mayBeFound(what: string): SvcError {
  return new SvcError(
    "unavailable",
    `ledger unavailable: ${what}; the request may be found there: look at the run or the ledger before asking again, or ask again under the same Idempotency-Key`,
  );
}
