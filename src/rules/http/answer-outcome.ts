/** What an answer says about its request. */
import type { JsonObject } from "../../kernel/json/json.ts";
import { firstMismatch } from "../../kernel/partial-match.ts";
import type { HttpSpec } from "./routes.ts";

export interface AnswerOutcome {
  readonly status: "succeeded" | "failed" | "uncertain";
  readonly error?: string;
}

/**
 * Outcome of a request by its result, `{status, body}`. Some services answer 200 to a failed call: `http.failed` says what
 * such an answer looks like.
 */
export function answerOutcome(result: JsonObject, http: HttpSpec | undefined): AnswerOutcome {
  const status = Number(result["status"]);
  if (status >= 400) return { status: status < 500 ? "failed" : "uncertain", error: `status ${status}` };
  if (http?.failed !== undefined && firstMismatch(http.failed, result) === null)
    return { status: "failed", error: `status ${status}, and a body that says that it failed` };
  return { status: "succeeded" };
}
