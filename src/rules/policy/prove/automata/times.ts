/**
 * Representative times for windows and freezes. Offsets between zones change over the year, so a full year of window
 * starts and ends is checked, and each freeze.
 */
import { LruMap } from "../../../../kernel/lru.ts";
import { type HourRange, isOpen, wallClock } from "../../checks/hours.ts";
import type { PolicyFreeze, TimeWindow } from "../../compile.ts";
import { UndecidableError } from "./machine.ts";

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
const YEAR_DAYS = 371;
/** Two weeks, since in one of them a clock change can remove an hour. */
const WEEKS_DAYS = 15;
/** Maximum clock readings; above it the result is incomplete. */
const MAX_CLOCK_READINGS = 1_000_000;

interface TimeAtom {
  at_ms: number;
  /** State of each window and freeze, in order. */
  shown: string;
}

export function timeAtoms(
  windows: readonly TimeWindow[],
  freezes: readonly PolicyFreeze[],
  now_ms: number,
): TimeAtom[] {
  const key = JSON.stringify([
    windows.map(({ tz, days, hours }) => [tz, [...days], hours]),
    freezes.map(({ from_ms, to_ms }) => [from_ms, to_ms]),
    now_ms,
  ]);
  const known = knownTimes.get(key) ?? timesTold(windows, freezes, now_ms);
  knownTimes.set(key, known);
  return known;
}

/** Cached, because many classes of tools need the same times. */
const knownTimes = new LruMap<string, TimeAtom[]>(50);

function timesTold(
  windows: readonly TimeWindow[],
  freezes: readonly PolicyFreeze[],
  now_ms: number,
): TimeAtom[] {
  const found = new Map<string, number>();
  const zones = new Set(windows.map(({ tz }) => tz));
  const look = (at_ms: number) => {
    const clocks = new Map([...zones].map((zone) => [zone, wallClock(zone, at_ms)]));
    const shown = [
      ...windows.map(({ tz, days, hours }) => (isOpen(clocks.get(tz)!, days, hours) ? "0" : "1")),
      ...freezes.map((freeze) => (at_ms >= freeze.from_ms && at_ms < freeze.to_ms ? "1" : "0")),
    ].join("");
    if (!found.has(shown)) found.set(shown, at_ms);
  };
  look(now_ms);
  const days = zones.size > 1 ? YEAR_DAYS : zones.size * WEEKS_DAYS;
  const edges = freezes.flatMap(({ from_ms, to_ms }) => [from_ms, to_ms]);
  const starts = [now_ms, ...edges.flatMap((edge) => [edge - WEEKS_DAYS * DAY, edge])];
  const hours = windows.reduce((sum, window) => sum + 1 + 2 * window.hours.length, 0);
  if (starts.length * days * hours * 4 * zones.size > MAX_CLOCK_READINGS)
    throw new UndecidableError("windows and freezes have too many starts and ends in total");
  for (const edge of edges) for (const at_ms of [edge - 1, edge]) look(at_ms);
  for (const start of starts)
    for (let day = 0; day < days; day++) lookAtDay(start + day * DAY, windows, look);
  return [...found].map(([shown, at_ms]) => ({ shown, at_ms }));
}

/** Visits the minutes of a day at which a window starts or ends, and the minute before each. */
function lookAtDay(day_ms: number, windows: readonly TimeWindow[], look: (at_ms: number) => void): void {
  const start = Math.floor(day_ms / MINUTE) * MINUTE;
  for (const { tz, hours } of windows) {
    const { minute } = wallClock(tz, start);
    for (const edge of [0, ...hours.flatMap(({ from, to }: HourRange) => [from, to])]) {
      const at_ms = start + ((edge - minute + 2 * 24 * 60) % (24 * 60)) * MINUTE;
      // After a clock change the hour comes earlier or later.
      const changed = edge - wallClock(tz, at_ms).minute;
      for (const at of new Set([at_ms, at_ms + (((changed + 36 * 60) % (24 * 60)) - 12 * 60) * MINUTE])) {
        look(at);
        look(at - MINUTE);
      }
    }
  }
}
