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

/** A clock tick of /proc, in milliseconds. */
const TICK_MS = 10;

/** The fields of /proc/<pid>/stat behind the name, which may itself hold spaces; none where the system does not tell. */
function fields(pid: number | "self"): string[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  } catch {
    return [];
  }
}

export function parentOf(pid: number): number {
  return Number(fields(pid)[1] ?? 0);
}

/** Milliseconds of all children that have ended. */
export function endedChildrenMs(): number {
  const stat = fields("self");
  return TICK_MS * (Number(stat[13] ?? 0) + Number(stat[14] ?? 0));
}

/** Milliseconds of all threads of this process, those that have ended included. */
export function ownMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

/** Milliseconds of a process and of those below it, ended ones that were waited for included. */
export function treeMs(root: number): number {
  const stats = new Map<number, string[]>();
  for (const name of readdirSync("/proc"))
    if (/^\d+$/.test(name)) stats.set(Number(name), fields(Number(name)));
  const within = (pid: number): boolean =>
    pid === root || (pid > 1 && within(Number(stats.get(pid)?.[1] ?? 0)));
  let ticks = 0;
  for (const [pid, stat] of stats) {
    if (within(pid)) ticks += [11, 12, 13, 14].reduce((sum, i) => sum + Number(stat[i] ?? 0), 0);
  }
  return TICK_MS * ticks;
}
