/** What of a call that was made can be told to a server in one request. */
import { byteSize } from "../engine/before.ts";
import { cutText } from "../kernel/cut.ts";
import { assertJson, type Json } from "../kernel/json.ts";
import { LIMITS } from "../kernel/limits.ts";
import type { Outcome } from "./transport.ts";

/** The rest of the request: names of fields, and an error. */
const ROOM = 131_072;
const MOST = LIMITS.body_bytes - ROOM;
/** Half, because what is there after the call goes with it. */
const MOST_BEFORE = MOST / 2;
const ERROR_CHARS = 20_000;

/** A value stands one level deep in what is told. */
const INSIDE = 1;

/** Throws where a value cannot be kept exactly once it is told. */
export function assertTellable(value: unknown, what: string): asserts value is Json {
  assertJson(value, what, INSIDE);
}

/** What of a read a server can be told; undefined where it is too deep or too long for a request. */
export function tellable(value: Json): Json | undefined {
  try {
    assertTellable(value, "value");
    return byteSize(value) <= MOST ? value : undefined;
  } catch {
    return undefined;
  }
}

/** What went wrong, as long as a request has room for. */
export const shortened = (error: string): string => cutText(error, ERROR_CHARS);

/** Asked before the call is made: one whose undo could not be built afterwards would be made for good. */
export function untellable(before: Json): string | null {
  const bytes = byteSize(before);
  if (bytes <= MOST_BEFORE) return null;
  return `the answer has ${bytes} bytes, and a server can be told ${MOST_BEFORE} at most`;
}

/** The call was made, so its outcome is told in any case: without the longer of its values, or without both. */
export function fitting(outcome: Outcome): Outcome {
  const { error, result, after, ...told } = outcome;
  const cut = error === undefined ? told : { ...told, error: shortened(error) };
  const values = { ...(result === undefined ? {} : { result }), ...(after === undefined ? {} : { after }) };
  let room = MOST - (told.before === undefined ? 0 : byteSize(told.before));
  const kept = Object.entries(values)
    .map(([name, value]) => ({ name, value, bytes: byteSize(value) }))
    .sort((a, b) => a.bytes - b.bytes)
    .filter(({ bytes }) => {
      room -= bytes;
      return room >= 0;
    });
  return { ...cut, ...Object.fromEntries(kept.map(({ name, value }) => [name, value])) };
}
