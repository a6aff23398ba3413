/** Processor time of processes and their threads, as Linux counts it; other work on the machine does not change it. */
import { readdirSync, readFileSync } from "node:fs";

export interface Cpu {
  /** Microseconds of the main threads. */
  main: number;
  /** Microseconds of all threads. */
  all: number;
}

/** Undefined where the system does not tell. */
export function cpuOf(pids: readonly number[]): Cpu | undefined {
  const sum: Cpu = { main: 0, all: 0 };
  try {
    for (const pid of pids) {
      for (const thread of readdirSync(`/proc/${pid}/task`)) {
        const spent =
          Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]) / 1_000;
        sum.all += spent;
        if (Number(thread) === pid) sum.main += spent;
      }
    }
  } catch {
    return undefined;
  }
  return sum;
}
