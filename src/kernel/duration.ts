/** Parses durations (`30m`, `7d`) and points in time (`since`), the same way on every surface. */
import { invalidError } from "./errors.ts";

const UNITS: Record<string, number> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};
const DURATION = /^(\d{1,15})(ms|s|m|h|d|w)$/;
const LONGEST_MS = 100 * 366 * 86_400_000;
const ISO = /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?)?$/;

export function tryDuration(text: string): number | undefined {
  const match = DURATION.exec(text);
  if (match === null) return undefined;
  const ms = Number(match[1]) * UNITS[match[2]!]!;
  return ms <= LONGEST_MS ? ms : undefined;
}

export function parseDuration(text: string, what = "duration"): number {
  const ms = tryDuration(text);
  if (ms === undefined) {
    throw invalidError(
      `${what}: ${JSON.stringify(text)} is not a duration; write a whole number and ms, s, m, h, d or w, such as 30m`,
    );
  }
  return ms;
}

export function tryTimestamp(text: string): number | undefined {
  if (!ISO.test(text)) return undefined;
  const ms = Date.parse(/[T ]/.test(text) && !/(?:Z|[+-]\d{2}:?\d{2})$/.test(text) ? `${text}Z` : text);
  return Number.isNaN(ms) || !isDay(text.slice(0, 10)) ? undefined : ms;
}

/** `Date.parse` reads February 30 as March 2. */
const isDay = (day: string): boolean => new Date(`${day}T00:00Z`).toISOString().startsWith(day);

/** Parses a duration before `now`, or an ISO 8601 date or timestamp. */
export function parseSince(text: string, now: number, what = "since"): number {
  const back = tryDuration(text);
  if (back !== undefined) return now - back;
  const at = tryTimestamp(text);
  if (at === undefined) {
    throw invalidError(
      `${what}: ${JSON.stringify(text)} is neither a duration such as 7d nor an ISO 8601 date or timestamp`,
    );
  }
  return at;
}

/** Formats a duration for people, such as `1h 5m`. */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)}ms`;
  const parts: string[] = [];
  let rest = Math.round(ms / 1_000);
  for (const [unit, seconds] of [
    ["d", 86_400],
    ["h", 3_600],
    ["m", 60],
    ["s", 1],
  ] as const) {
    const n = Math.floor(rest / seconds);
    rest -= n * seconds;
    if (n > 0) parts.push(`${n}${unit}`);
    if (parts.length === 2) break;
  }
  return parts.join(" ") || "0s";
}
