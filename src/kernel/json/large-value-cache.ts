/**
 * Cache of precomputed results for large values. Decisions are synchronous, so slow results for large values are
 * computed beforehand, with pauses. Code that finds no cached result computes it on the spot. An entry lives as long as
 * its value.
 */
import type { PausableWork } from "../pausable-work.ts";
import type { JsonObject, JsonValue } from "./json.ts";

/** A value is large if it has more members or more text than this. */
const FEW_VALUES = 1_000;
const SHORT_CHARS = 32_768;

/** Values known to be large. Even the first look at an object lists all of its names, so there is no second one. */
const large = new WeakSet<object>();

export function isLargeValue(value: JsonValue): boolean {
  if (costLeft(value, { values: FEW_VALUES, chars: SHORT_CHARS }) !== undefined) return false;
  if (value !== null && typeof value === "object") large.add(value);
  return true;
}

/** For a parser, which knows how many members an object has before anybody lists them. */
export function noteMembers(object: JsonObject, members: number): void {
  if (members > FEW_VALUES) large.add(object);
}

/** Names of wide objects: listing tens of thousands takes as long as a slice of other work. */
const wideNames = new WeakMap<object, readonly string[]>();

/** The same as `Object.keys`, for a value that nobody changes. */
export function memberNames(object: JsonObject): readonly string[] {
  if (!large.has(object)) return Object.keys(object);
  const names = wideNames.get(object) ?? Object.keys(object);
  wideNames.set(object, names);
  return names;
}

interface Room {
  values: number;
  chars: number;
}

/**
 * Returns the capacity left after the value, or undefined if the value does not fit. Stops when the capacity is used
 * up.
 */
function costLeft(value: JsonValue, room: Room): Room | undefined {
  if (--room.values < 0) return undefined;
  if (typeof value === "string") {
    room.chars -= value.length;
    return room.chars < 0 ? undefined : room;
  }
  if (value === null || typeof value !== "object") return room;
  if (large.has(value)) return undefined;
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

/** Results by value and topic. */
const known = new WeakMap<object, Map<unknown, unknown>>();

/** Returns the cached result about a value, or undefined. */
export function cachedResult<T>(value: JsonValue, about: unknown): T | undefined {
  if (value === null || typeof value !== "object") return undefined;
  return known.get(value)?.get(about) as T | undefined;
}

/** Computes a result about a large value with pauses, and caches it. */
export function* precomputeResult<T>(
  value: JsonValue,
  about: unknown,
  work: () => PausableWork<T>,
): PausableWork<void> {
  if (value === null || typeof value !== "object" || cachedResult<T>(value, about) !== undefined) return;
  yield;
  const result = yield* work();
  const results = known.get(value) ?? new Map();
  known.set(value, results.set(about, result));
}
