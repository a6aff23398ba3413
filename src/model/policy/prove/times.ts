/**
 * The times that windows and freezes can tell apart. A window's hours are those of its zone, whose distance from
 * others changes over the year, so a whole year of their beginnings and ends is looked at, and each freeze.
 */
import type { Freeze, TimeWindow } from "../compile.ts";
import { type HourRange, isOpen, wallClock } from "../hours.ts";

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
const YEAR_DAYS = 371;
const WEEK_DAYS = 8;

interface TimeAtom {
  at_ms: number;
  /** What each window and freeze says, in their order. */
  shown: string;
}

export function timeAtoms(
  windows: readonly TimeWindow[],
  freezes: readonly Freeze[],
  now_ms: number,
): TimeAtom[] {
  const found = new Map<string, number>();
  const look = (at_ms: number) => {
    const shown = [
      ...windows.map((window) =>
        isOpen(wallClock(window.tz, at_ms), window.days, window.hours) ? "0" : "1",
      ),
      ...freezes.map((freeze) => (at_ms >= freeze.from_ms && at_ms < freeze.to_ms ? "1" : "0")),
    ].join("");
    if (!found.has(shown)) found.set(shown, at_ms);
  };
  look(now_ms);
  const zones = new Set(windows.map(({ tz }) => tz));
  const days = zones.size > 1 ? YEAR_DAYS : zones.size * WEEK_DAYS;
  const edges = freezes.flatMap(({ from_ms, to_ms }) => [from_ms, to_ms]);
  const starts = [now_ms, ...edges.flatMap((edge) => [edge - WEEK_DAYS * DAY, edge])];
  for (const edge of edges) for (const at_ms of [edge - 1, edge]) look(at_ms);
  for (const start of starts)
    for (let day = 0; day < days; day++) lookAtDay(start + day * DAY, windows, look);
  return [...found].map(([shown, at_ms]) => ({ shown, at_ms }));
}

/** Every minute of one day at which a window of it begins or ends, and the minute before. */
function lookAtDay(day_ms: number, windows: readonly TimeWindow[], look: (at_ms: number) => void): void {
  const start = Math.floor(day_ms / MINUTE) * MINUTE;
  for (const { tz, hours } of windows) {
    const { minute } = wallClock(tz, start);
    for (const edge of [0, ...hours.flatMap(({ from, to }: HourRange) => [from, to])]) {
      const at_ms = start + ((edge - minute + 2 * 24 * 60) % (24 * 60)) * MINUTE;
      look(at_ms);
      look(at_ms - MINUTE);
    }
  }
}
