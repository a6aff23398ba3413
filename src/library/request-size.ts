/** Trims the values of a completed call so that its outcome fits into one request to the server. */
import { byteSize } from "../govern/decide/before-state.ts";
import { assertJson, type JsonValue } from "../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../kernel/limits.ts";
import { cutText } from "../kernel/text/truncate.ts";
import type { CallOutcome } from "./transport.ts";

/** Space for the rest of the request: field names and an error. */
const ROOM = 131_072;
const MAX_VALUE_BYTES = SERVICE_LIMITS.body_bytes - ROOM;
/** Half of the space, because the read after the call travels in the same request. */
const MAX_BEFORE_BYTES = MAX_VALUE_BYTES / 2;
const ERROR_CHARS = 20_000;

/** Nesting depth of a value inside the request body. */
const INSIDE = 1;

/** Throws unless the value survives JSON exactly and fits the depth limit of a request. */
export function assertSendable(value: unknown, what: string): asserts value is JsonValue {
  assertJson(value, what, INSIDE);
}

/** Returns the value, or undefined if it is too deep or too long for a request. */
export function toSendable(value: JsonValue): JsonValue | undefined {
  try {
    assertSendable(value, "value");
    return byteSize(value) <= MAX_VALUE_BYTES ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Cuts an error message to the length that a request allows. */
export const shortenError = (error: string): string => cutText(error, ERROR_CHARS);

/**
 * Explains why a read made before the call cannot be sent, or returns null. Runs before the call: without this read its
 * undo could not be built.
 */
export function unsendableReason(before: JsonValue): string | null {
  const bytes = byteSize(before);
  if (bytes <= MAX_BEFORE_BYTES) return null;
  return `the answer has ${bytes} bytes; a request to the server can carry at most ${MAX_BEFORE_BYTES}`;
}

/** Drops the longest values if they do not fit. The call was made, so its outcome must be reported anyway. */
export function trimOutcome(outcome: CallOutcome): CallOutcome {
  const { error, result, after, observed, ...rest } = outcome;
  const cut = error === undefined ? rest : { ...rest, error: shortenError(error) };
  const values = {
    ...(result === undefined ? {} : { result }),
    ...(after === undefined ? {} : { after }),
    ...(observed === undefined ? {} : { observed }),
  };
  let room = MAX_VALUE_BYTES - (rest.before === undefined ? 0 : byteSize(rest.before));
  const kept = Object.entries(values)
    .map(([name, value]) => ({ name, value, bytes: byteSize(value) }))
    .sort((a, b) => a.bytes - b.bytes)
    .filter(({ bytes }) => {
      room -= bytes;
      return room >= 0;
    });
  return { ...cut, ...Object.fromEntries(kept.map(({ name, value }) => [name, value])) };
}
