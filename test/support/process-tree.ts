/** Which processes were started, directly or not, by a given one, and which have ended; to freeze and kill them together. */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

export function descendants(root: number): number[] {
  const children = new Map<number, number[]>();
  for (const [pid, parent] of process.platform === "linux" ? fromProc() : fromPs()) {
    const siblings = children.get(parent);
    if (siblings === undefined) children.set(parent, [pid]);
    else siblings.push(pid);
  }
  const found: number[] = [];
  const open = [root];
  for (let pid = open.pop(); pid !== undefined; pid = open.pop()) {
    for (const child of children.get(pid) ?? []) {
      found.push(child);
      open.push(child);
    }
  }
  return found;
}

/** Whether a process has ended. One that nobody has reaped yet holds nothing any more: it is as gone as can be. */
export function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return process.platform === "linux" && /^[ZX]/.test(statOf(pid)[0]!);
  } catch (error) {
    // Somebody else's process is still a process; one whose folder in /proc went in the meantime is not.
    return (error as NodeJS.ErrnoException).code !== "EPERM";
  }
}

/** Whether a process that was sent SIGSTOP has come to a stop; elsewhere than on Linux it is taken to have. */
export function isStopped(pid: number): boolean {
  return process.platform !== "linux" || statOf(pid)[0] === "T";
}

/** The fields of /proc/pid/stat from the state on. The name before it, in parentheses, may hold anything. */
function statOf(pid: number | string): string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

/** Read from /proc, because a slim container has no ps. */
function fromProc(): [number, number][] {
  const pairs: [number, number][] = [];
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      pairs.push([Number(name), Number(statOf(name)[1])]);
    } catch {
      // It ended while we looked.
    }
  }
  return pairs;
}

function fromPs(): [number, number][] {
  const lines = execFileSync("ps", ["-axo", "pid=,ppid="], { encoding: "utf8" }).trim().split("\n");
  return lines.map((line) => {
    const [pid, parent] = line.trim().split(/\s+/).map(Number);
    return [pid ?? 0, parent ?? 0];
  });
}
