/** What an answer says about its request. */
import { isJsonObject, type JsonObject, type JsonValue } from "../../kernel/json/json.ts";
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
  const ran = http?.graphql === undefined ? "yes" : graphqlRan(result["body"]);
  if (ran !== "yes")
    return { status: ran === "no" ? "failed" : "uncertain", error: `status ${status}, and GraphQL errors` };
  if (http?.failed !== undefined && firstMismatch(http.failed, result) === null)
    return { status: "failed", error: `status ${status}, and a body that says that it failed` };
  return { status: "succeeded" };
}

/** An answer with errors and without `data` was refused before it ran. One without a value may have run. */
function graphqlRan(body: JsonValue | undefined): "yes" | "no" | "unknown" {
  if (!isJsonObject(body)) return "unknown";
  const { errors, data } = body;
  if (!Array.isArray(errors) || errors.length === 0) return "yes";
  if (data === undefined) return "no";
  return isJsonObject(data) && Object.values(data).some((value) => value !== null) ? "yes" : "unknown";
}
