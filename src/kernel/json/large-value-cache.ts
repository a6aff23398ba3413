/**
 * Cache of precomputed results for large values. Decisions are synchronous, so slow results for large values are
 * computed beforehand, with pauses. Code that finds no cached result computes it on the spot. An entry lives as long as
 * its value.
 */
import type { PausableWork } from "../pausable-work.ts";
import type { JsonValue } from "./json.ts";
import { FEW_MEMBERS, isKnownLarge, noteLarge } from "./known-large.ts";

/** A value with more text than this, or with more than `FEW_MEMBERS` values, is large. */
const SHORT_CHARS = 32_768;

export function isLargeValue(value: JsonValue): boolean {
  if (costLeft(value, { values: FEW_MEMBERS, chars: SHORT_CHARS }) !== undefined) return false;
  if (value !== null && typeof value === "object") noteLarge(value);
  return true;
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
  if (isKnownLarge(value)) return undefined;
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
  cacheResult(value, about, yield* work());
}

/** Caches a result about a value that another thread computed. */
export function cacheResult<T>(value: JsonValue, about: unknown, result: T): void {
  if (value === null || typeof value !== "object") return;
  const results = known.get(value) ?? new Map();
  known.set(value, results.set(about, result));
}
