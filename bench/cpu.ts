/** Processor time from /proc: on a machine that is shared, wall-clock time says little. Zero where there is no /proc. */
import { readdirSync, readFileSync } from "node:fs";

/** A clock tick of /proc, in milliseconds. */
const TICK_MS = 10;

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/** The fields of /proc/<pid>/stat behind the name, which may itself hold spaces. */
function fields(pid: number | "self"): string[] {
  const stat = read(`/proc/${pid}/stat`);
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

export function parentOf(pid: number): number {
  return Number(fields(pid)[1] ?? 0);
}

/** What all children that have ended took. */
export function endedChildrenMs(): number {
  const stat = fields("self");
  return TICK_MS * (Number(stat[13] ?? 0) + Number(stat[14] ?? 0));
}

/** What all threads of this process took. */
export function ownMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

/** What this process's main thread took. */
export function mainThreadMs(): number {
  return Number(read(`/proc/self/task/${process.pid}/schedstat`).split(" ")[0]) / 1e6;
}

/** What the processes below this one took, those that have ended and been waited for included. */
export function treeMs(root: number): number {
  const parents = new Map<number, string[]>();
  for (const name of readdirSync("/proc"))
    if (/^\d+$/.test(name)) parents.set(Number(name), fields(Number(name)));
  const within = (pid: number): boolean =>
    pid === root || (pid > 1 && within(Number(parents.get(pid)?.[1] ?? 0)));
  let ticks = 0;
  for (const [pid, stat] of parents) {
    if (within(pid)) ticks += [11, 12, 13, 14].reduce((sum, i) => sum + Number(stat[i] ?? 0), 0);
  }
  return TICK_MS * ticks;
}
