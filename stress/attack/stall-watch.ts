/**
 * Loaded into the server process before it starts: measures how long its event loop paused and reports to its parent
 * over the process channel. It reports the longest pause, and how much of it was the process's own work:
 * on a machine that others use too, a process may wait its turn through no fault of its code.
 */
import { readFileSync } from "node:fs";
import { monitorEventLoopDelay, PerformanceObserver } from "node:perf_hooks";

export interface Stall {
  /** The longest delay of the event loop. */
  loop_ms: number;
  /** Of the longest gap between two turns, the part in which the thread of the event loop was computing. */
  busy_ms: number;
  /** Of the same gap, the part that went to garbage collection. */
  gc_ms: number;
}

const TURN_MS = 20;
const delay = monitorEventLoopDelay({ resolution: 10 });
delay.enable();

/** Threads can compute as much as they like, so the event loop's own time is read where the system has it. */
function computed_ms(): number {
  try {
    return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ")[0]) / 1e6;
  } catch {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000;
  }
}

interface Span {
  from: number;
  to: number;
}

const collections: Span[] = [];
const collected = new PerformanceObserver((list) => noteCollections(list.getEntries()));
collected.observe({ entryTypes: ["gc"] });
function noteCollections(entries: readonly { startTime: number; duration: number }[]): void {
  for (const { startTime, duration } of entries)
    collections.push({ from: startTime, to: startTime + duration });
}

let busiest = 0;
let longest: Span = { from: 0, to: 0 };
let last = performance.now();
let used = computed_ms();
setInterval(() => {
  const now = performance.now();
  const busy = Math.min(now - last - TURN_MS, computed_ms() - used);
  if (busy > busiest) {
    busiest = busy;
    longest = { from: last, to: now };
  }
  last = performance.now();
  used = computed_ms();
}, TURN_MS).unref();

/** How much of the span the collections in it took. */
function collectedIn({ from, to }: Span): number {
  const parts = collections.map((one) => Math.min(one.to, to) - Math.max(one.from, from));
  return parts.reduce((sum, part) => sum + Math.max(0, part), 0);
}

process.on("message", (message) => {
  if (message !== "stall?") return;
  noteCollections(collected.takeRecords());
  const stall: Stall = {
    loop_ms: Math.max(0, delay.max / 1e6 - 10),
    busy_ms: Math.max(0, busiest),
    gc_ms: collectedIn(longest),
  };
  delay.reset();
  busiest = 0;
  collections.length = 0;
  process.send?.(stall);
});
// The parent is gone: nobody would end this process.
process.on("disconnect", () => process.exit(1));
process.channel?.unref();
