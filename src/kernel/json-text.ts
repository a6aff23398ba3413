/** JSON as text in turns: what is small is written at once, and of what is large one member after the other. */
import type { Json } from "./json.ts";
import { isLargeValue } from "./large-values.ts";
import { type Paced, UNITS_A_PAUSE } from "./turns.ts";

/** Members may themselves have as many members as is small. */
const PAUSE_AFTER = UNITS_A_PAUSE / 1_024;

/** The same text as `JSON.stringify`. */
export function* writingJson(value: Json): Paced<string> {
  if (value === null || typeof value !== "object" || !isLargeValue(value)) return JSON.stringify(value);
  const pieces: string[] = [];
  if (Array.isArray(value)) {
    for (const [i, member] of value.entries()) {
      if (i % PAUSE_AFTER === 0) yield;
      pieces.push((yield* writingJson(member)) ?? "null");
    }
    return `[${pieces.join(",")}]`;
  }
  for (const [i, name] of Object.keys(value).entries()) {
    if (i % PAUSE_AFTER === 0) yield;
    const member = value[name];
    if (member !== undefined) pieces.push(`${JSON.stringify(name)}:${yield* writingJson(member)}`);
  }
  return `{${pieces.join(",")}}`;
}
