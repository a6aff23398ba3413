/** CPU time of short commands from start to end, next to a Node that does nothing. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { endedChildrenMs } from "./cpu.ts";
import type { BenchOptions } from "./main.ts";
import { alternate, median, type Row } from "./report.ts";
import { ROOT } from "./server.ts";

const SVC = join(ROOT, "bin", "svc.js");
/** The system counts in steps of 10 ms, so this many runs are counted together. */
const AT_A_TIME = 10;
const GOAL = { at_most: 100 };

const COMMANDS: Record<string, { args: string[]; input?: string; goal: Row["goal"] }> = {
  "node that does nothing": { args: ["-e", "0"], goal: null },
  "svc --help": { args: [SVC, "--help"], goal: GOAL },
  "svc validate": {
    args: [SVC, "validate", join(ROOT, "packs", "coding-agents", "manifests.yaml")],
    goal: GOAL,
  },
  // Input without an event is refused before settings are read: the hook's code is loaded, and no server is asked.
  "svc hook": { args: [SVC, "hook", "claude-code"], input: "{}", goal: GOAL },
};

/** Certificates that the environment adds are read by every Node as it starts, ours or not: 70 ms for a system's list. */
const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env;

function cost(args: string[], input: string): number {
  const before = endedChildrenMs();
  for (let i = 0; i < AT_A_TIME; i++)
    spawnSync(process.execPath, args, { cwd: ROOT, env, input, stdio: "pipe" });
  return (endedChildrenMs() - before) / AT_A_TIME;
}

export async function run({ rounds }: BenchOptions): Promise<Row[]> {
  const measured = await alternate(
    rounds,
    Object.fromEntries(
      Object.entries(COMMANDS).map(([name, { args, input }]) => [name, () => cost(args, input ?? "")]),
    ),
  );
  return Object.entries(COMMANDS).map(([name, { goal }]) => ({
    suite: "start",
    what: `processor time of ${name}`,
    value: median(measured[name]!),
    unit: " ms",
    goal,
  }));
}
