/** Pausable JSON serialization: writes a small value at once, and a large one member by member. */
import { type PausableWork, UNITS_PER_PAUSE } from "../pausable-work.ts";
import type { JsonValue } from "./json.ts";
import { JsonTextValue } from "./json-text-value.ts";
import { memberNames } from "./known-large.ts";
import { isLargeValue } from "./large-value-cache.ts";

/** A member that is itself small can have up to 1,000 values. */
const PAUSE_AFTER = UNITS_PER_PAUSE / 1_024;

/** Returns the same text as `JSON.stringify`. */
export function* jsonTextInSteps(value: JsonValue): PausableWork<string> {
  if (value instanceof JsonTextValue) return value.text;
  if (value === null || typeof value !== "object" || !isLargeValue(value)) return JSON.stringify(value);
  const pieces: string[] = [];
  if (Array.isArray(value)) {
    for (const [i, member] of value.entries()) {
      if (i % PAUSE_AFTER === 0) yield;
      pieces.push((yield* jsonTextInSteps(member)) ?? "null");
    }
    return `[${pieces.join(",")}]`;
  }
  for (const [i, name] of memberNames(value).entries()) {
    if (i % PAUSE_AFTER === 0) yield;
    const member = value[name];
    if (member !== undefined) pieces.push(`${JSON.stringify(name)}:${yield* jsonTextInSteps(member)}`);
  }
  return `{${pieces.join(",")}}`;
}
