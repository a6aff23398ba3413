/** Which processes were started, directly or not, by a given one; for freezing and killing them together. */
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

/** Read from /proc, because a slim container has no ps. */
function fromProc(): [number, number][] {
  const pairs: [number, number][] = [];
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "utf8");
      // The command name, in parentheses, may itself hold spaces and parentheses.
      const parent = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1];
      pairs.push([Number(name), Number(parent)]);
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
