/** Limits on memory and processes of a confined command: by cgroups where this user may, else by rlimits. */
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { totalmem } from "node:os";
import { join } from "node:path";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";

const ROOT = "/sys/fs/cgroup";

export interface ResourceLimits {
  /** Describes for users which mechanism sets which limit. */
  readonly told: string;
  /** Files that take the number of the process to limit. */
  readonly groups: readonly string[];
  /** Shell commands for the confined side. */
  readonly ulimits: string;
  remove(): void;
}

export interface WantedLimits {
  readonly processes: number;
  readonly memory_mb: number;
}

const MB = 1_024 ** 2;

export function resourceLimits(id: string, { processes, memory_mb }: WantedLimits): ResourceLimits {
  // Leaves a quarter of the machine's memory, so that the service survives.
  const memory = Math.min(memory_mb * MB, Math.floor(totalmem() * 0.75));
  const bounds = { processes, memory };
  const made = unifiedGroup(id, bounds) ?? separateGroups(id, bounds);
  // No limit is raised: the machine's own may be lower.
  const always = `ulimit -c 0; ulimit -n ${SERVICE_LIMITS.run_open_files} 2>/dev/null`;
  const amount = `${processes} processes and ${Math.floor(memory / MB)} MB`;
  if (made !== null)
    return {
      told: `${amount}, by cgroups`,
      groups: made.map((folder) => join(folder, "cgroup.procs")),
      ulimits: always,
      remove: () => {
        for (const folder of made) attempt(() => rmdirSync(folder));
      },
    };
  const kilobytes = Math.floor(memory / 1_024);
  const isRoot = process.getuid?.() === 0;
  return {
    told: isRoot
      ? `${Math.floor(memory / MB)} MB for each process, by rlimits; the number of processes is not limited, because root needs a writable cgroup for that`
      : `${processes} processes of this user and ${Math.floor(memory / MB)} MB for each, by rlimits`,
    groups: [],
    ulimits: `${always}; ulimit -d ${kilobytes}; ulimit -u ${processes}`,
    remove: () => {},
  };
}

interface Bounds {
  readonly processes: number;
  /** In bytes. */
  readonly memory: number;
}

/** A group below this process's own in the unified hierarchy. */
function unifiedGroup(id: string, { processes, memory }: Bounds): string[] | null {
  const own = attempt(() => /^0::(\/.*)$/m.exec(readFileSync("/proc/self/cgroup", "utf8"))?.[1]);
  if (own === undefined || !existsSync(join(ROOT, "cgroup.controllers"))) return null;
  // A group with processes can have no limited children, so the group is a sibling.
  const folder = join(ROOT, own, "..", id);
  if (!folder.startsWith(`${ROOT}/`)) return null;
  return makeGroup(folder, { "memory.max": memory, "memory.swap.max": 0, "pids.max": processes })
    ? [folder]
    : null;
}

/** A group in each of the separate hierarchies. */
function separateGroups(id: string, { processes, memory }: Bounds): string[] | null {
  const [forPids, forMemory] = [join(ROOT, "pids", id), join(ROOT, "memory", id)];
  if (!makeGroup(forPids, { "pids.max": processes })) return null;
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
