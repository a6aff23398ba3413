/** The value of an answer's body as `$result.body` and `$before.body` show it. */
import type { JsonValue } from "../../kernel/json/json.ts";
import { parseJsonBytes } from "../../kernel/json/json.ts";

/** Bodies up to this length are values; longer ones are a length and a hash. */
export const VALUE_BYTES = 1_048_576;

const JSON_TYPE = /^application\/(?:[a-z0-9.+-]+\+)?json\s*(?:;|$)/i;
const TEXT_TYPE = /^(?:text\/|application\/(?:x-www-form-urlencoded|xml|yaml|[a-z0-9.+-]+\+xml)\s*(?:;|$))/i;

/** JSON as its value, text as text, and anything else as undefined. An empty body is null. */
export function answerValue(type: string | undefined, content: Uint8Array): JsonValue | undefined {
  if (content.length === 0) return null;
  const kind = type ?? "";
  const isJson = JSON_TYPE.test(kind);
  if (isJson) {
    try {
      return parseJsonBytes(content);
    } catch {
      // Not strict JSON, such as a number beyond 2^53: shown as its text, so that no undo uses a rounded value.
    }
  }
  return isJson || TEXT_TYPE.test(kind) ? strictText(content) : undefined;
}

function strictText(content: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(content);
  } catch {
    return undefined;
  }
}
