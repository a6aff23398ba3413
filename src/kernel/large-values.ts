/**
 * Results about large values that were worked out ahead, in turns. Code that decides is synchronous; it finds here what
 * would take it long, and works out itself what it does not find. A result is kept as long as its value is.
 */
import type { Json } from "./json.ts";
import type { Paced } from "./turns.ts";

/** A value with more members, or more text, than this is large. */
const FEW_VALUES = 1_000;
const SHORT_CHARS = 32_768;

export function isLargeValue(value: Json): boolean {
  return costLeft(value, { values: FEW_VALUES, chars: SHORT_CHARS }) === undefined;
}

interface Room {
  values: number;
  chars: number;
}

/** What is left of the room behind the value; undefined where it does not fit. No more is looked at than the room holds. */
function costLeft(value: Json, room: Room): Room | undefined {
  if (--room.values < 0) return undefined;
  if (typeof value === "string") {
    room.chars -= value.length;
    return room.chars < 0 ? undefined : room;
  }
  if (value === null || typeof value !== "object") return room;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) if (costLeft(value[i]!, room) === undefined) return undefined;
    return room;
  }
  for (const name in value) {
    room.chars -= name.length;
    if (room.chars < 0 || costLeft(value[name]!, room) === undefined) return undefined;
  }
  return room;
}

/** By the value, and by what is asked about it. */
const known = new WeakMap<object, Map<unknown, unknown>>();

/** What was worked out ahead about this value; undefined where nothing was. */
export function knownAbout<T>(value: Json, about: unknown): T | undefined {
  if (value === null || typeof value !== "object") return undefined;
  return known.get(value)?.get(about) as T | undefined;
}

/** Works something out about a large value, so that it is known when it is asked for. */
export function* learningAbout<T>(value: Json, about: unknown, work: () => Paced<T>): Paced<void> {
  if (value === null || typeof value !== "object" || knownAbout<T>(value, about) !== undefined) return;
  yield;
  const result = yield* work();
  const results = known.get(value) ?? new Map();
  known.set(value, results.set(about, result));
}
