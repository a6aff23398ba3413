/** Limits on memory and processes of a confined command: by cgroups where this user may, else by rlimits. */
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { totalmem } from "node:os";
import { join } from "node:path";

const MAX_PROCESSES = 1_024;
const MAX_MEMORY = 8 * 1_024 ** 3;
const ROOT = "/sys/fs/cgroup";

export interface ResourceLimits {
  /** For people: what limits what. */
  readonly told: string;
  /** Files that take the number of the process to limit. */
  readonly groups: readonly string[];
  /** Shell commands for the confined side. */
  readonly ulimits: string;
  remove(): void;
}

/** At most three quarters of the machine's memory, so that the service survives. */
const memoryLimit = (): number => Math.min(MAX_MEMORY, Math.floor(totalmem() * 0.75));

export function resourceLimits(id: string): ResourceLimits {
  const memory = memoryLimit();
  const made = unifiedGroup(id, memory) ?? separateGroups(id, memory);
  const amount = `${MAX_PROCESSES} processes and ${Math.floor(memory / 1_024 ** 2)} MB`;
  if (made !== null)
    return {
      told: `${amount}, by cgroups`,
      groups: made.map((folder) => join(folder, "cgroup.procs")),
      ulimits: "ulimit -c 0",
      remove: () => {
        for (const folder of made) attempt(() => rmdirSync(folder));
      },
    };
  const kilobytes = Math.floor(memory / 1_024);
  const isRoot = process.getuid?.() === 0;
  return {
    told: isRoot
      ? `${Math.floor(memory / 1_024 ** 2)} MB for each process, by rlimits; the number of processes is not limited, because root needs a writable cgroup for that`
      : `${MAX_PROCESSES} processes of this user and ${Math.floor(memory / 1_024 ** 2)} MB for each, by rlimits`,
    groups: [],
    ulimits: `ulimit -c 0; ulimit -d ${kilobytes}; ulimit -u ${MAX_PROCESSES}`,
    remove: () => {},
  };
}

/** A group below this process's own in the unified hierarchy. */
function unifiedGroup(id: string, memory: number): string[] | null {
  const own = attempt(() => /^0::(\/.*)$/m.exec(readFileSync("/proc/self/cgroup", "utf8"))?.[1]);
  if (own === undefined || !existsSync(join(ROOT, "cgroup.controllers"))) return null;
  // A group with processes can have no limited children, so the group is a sibling.
  const folder = join(ROOT, own, "..", id);
  if (!folder.startsWith(`${ROOT}/`)) return null;
  return makeGroup(folder, { "memory.max": memory, "memory.swap.max": 0, "pids.max": MAX_PROCESSES })
    ? [folder]
    : null;
}

/** A group in each of the separate hierarchies. */
function separateGroups(id: string, memory: number): string[] | null {
  const [forPids, forMemory] = [join(ROOT, "pids", id), join(ROOT, "memory", id)];
  if (!makeGroup(forPids, { "pids.max": MAX_PROCESSES })) return null;
  if (makeGroup(forMemory, { "memory.limit_in_bytes": memory })) return [forPids, forMemory];
  attempt(() => rmdirSync(forPids));
  return null;
}

function makeGroup(folder: string, limits: Readonly<Record<string, number>>): boolean {
  const isMade = attempt(() => {
    mkdirSync(folder);
    for (const [name, value] of Object.entries(limits)) {
      // A machine without swap accounting has no such file.
      if (name === "memory.swap.max" && !existsSync(join(folder, name))) continue;
      writeFileSync(join(folder, name), String(value), { flag: "r+" });
    }
    return true;
  });
  if (isMade !== true) attempt(() => rmdirSync(folder));
  return isMade === true;
}

function attempt<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
