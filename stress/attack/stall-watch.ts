/**
 * Loaded into the server process before it starts: measures how long its event loop stood still and tells whoever
 * started it over the process channel. The longest standstill, and how much of it was the process's own work:
 * on a machine that others use too, a process may wait its turn through no fault of its own.
 */
import { readFileSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";

export interface Stall {
  /** The longest delay of the event loop. */
  loop_ms: number;
  /** Of the longest gap between two turns, the part in which the thread of the event loop was computing. */
  busy_ms: number;
}

const TURN_MS = 20;
const delay = monitorEventLoopDelay({ resolution: 10 });
delay.enable();

/** Threads beside the event loop may compute as much as they like, so its own time is asked for where it can be. */
function computed_ms(): number {
  try {
    return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ")[0]) / 1e6;
  } catch {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000;
  }
}

let busiest = 0;
let last = performance.now();
let used = computed_ms();
setInterval(() => {
  const now = performance.now();
  busiest = Math.max(busiest, Math.min(now - last - TURN_MS, computed_ms() - used));
  last = performance.now();
  used = computed_ms();
}, TURN_MS).unref();

process.on("message", (message) => {
  if (message !== "stall?") return;
  const stall: Stall = { loop_ms: Math.max(0, delay.max / 1e6 - 10), busy_ms: Math.max(0, busiest) };
  delay.reset();
  busiest = 0;
  process.send?.(stall);
});
// Whoever started it is gone: nobody would end it.
process.on("disconnect", () => process.exit(1));
process.channel?.unref();
