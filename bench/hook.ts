/** What the hook adds to a coding agent's call: its whole process, against one that does nothing. */
import { execFileSync, spawn } from "node:child_process";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sha256Hex } from "../src/kernel/hash.ts";
import type { BenchOptions } from "./main.ts";
import { alternate, median, type Row } from "./report.ts";
import { freePort, ROOT, stopped } from "./server.ts";

const KEY = "bench-key";
const SVC = join(ROOT, "bin", "svc.js");
const CALLS_A_ROUND = 10;
/** An empty shell script. */
const EMPTY = "cat >/dev/null";
const FILES = 100;

/** Through a shell, as clients start a hook. */
function timed(command: string, input: string): Promise<number> {
  const start = performance.now();
  return new Promise((resolve, reject) => {
    const child = spawn("sh", ["-c", command], { stdio: ["pipe", "pipe", "inherit"] });
    let out = "";
    child.stdout.on("data", (text) => {
      out += text;
    });
    child.on("close", (code) =>
      code === 0 && out === ""
        ? resolve(performance.now() - start)
        : reject(new Error(`the hook ended with code ${code}: ${out}`)),
    );
    child.stdin.end(input);
  });
}

export async function run({ rounds }: BenchOptions): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), "svc-bench-hook-"));
  const port = await freePort();
  const write = (name: string, value: unknown) =>
    writeFileSync(join(folder, name), JSON.stringify(value), { mode: 0o600 });
  const pack = (name: string) => copyFileSync(join(ROOT, "packs", "coding-agents", name), join(folder, name));
  pack("manifests.yaml");
  pack("policy.yaml");
  write("keys.json", [{ name: "bench", role: "agent", max_permissions: ["*"], key_sha256: sha256Hex(KEY) }]);
  writeFileSync(join(folder, "agent.key"), KEY, { mode: 0o600 });
  write("claude-code.json", { server: `http://127.0.0.1:${port}`, protect: [] });
  write("svc.config.yaml", {
    manifests: "manifests.yaml",
    policy: "policy.yaml",
    keys: "keys.json",
    data: "data",
    listen: { host: "127.0.0.1", port },
  });
  // Not inside the service's folder, which is protected.
  const work = mkdtempSync(join(tmpdir(), "svc-bench-work-"));
  const child = spawn(process.execPath, [SVC, "server", "--config", join(folder, "svc.config.yaml")], {
    cwd: folder,
    stdio: "ignore",
    env: { ...process.env, SVC_LOG_LEVEL: "error" },
  });
  let n = 0;
  const event = (hook_event_name: string, tool_name: string, tool_input: object) =>
    JSON.stringify({
      session_id: "bench",
      cwd: work,
      hook_event_name,
      tool_name,
      tool_input,
      tool_use_id: `${tool_name}-${n}`,
    });
  const words = [
    process.execPath,
    SVC,
    "hook",
    "claude-code",
    "--settings",
    join(folder, "claude-code.json"),
  ];
  const inNode = `exec ${words.join(" ")}`;
  const hook = `exec /usr/bin/perl ${join(ROOT, "bin", "carrier.pl")} ${words.join(" ")}`;
  const shell = (moment: string) => event(moment, "Bash", { command: "touch b.txt" });
  const edit = (moment: string) => event(moment, "Write", { file_path: join(work, "a.txt"), content: "x" });
  writeFileSync(join(work, "a.txt"), "a line\n".repeat(1_000));
  for (let i = 0; i < FILES; i++) writeFileSync(join(work, `${i}.txt`), "");
  execFileSync("git", ["init", "--quiet", work]);
  try {
    for (let tries = 0; ; tries++) {
      const up = await timed(hook, shell("PreToolUse")).catch(() => null);
      if (up !== null) break;
      if (tries > 300) throw new Error("the server did not start");
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    // Call by call in turn, so that what else the machine does meets all alike.
    const figures = await alternate(rounds * CALLS_A_ROUND, {
      empty: () => {
        n++;
        return timed(EMPTY, shell("PreToolUse"));
      },
      "before a shell command": () => timed(hook, shell("PreToolUse")),
      "after it, with a look at the work tree": () => timed(hook, shell("PostToolUse")),
      "before an edit": () => timed(hook, edit("PreToolUse")),
      "after it": () => timed(hook, edit("PostToolUse")),
      "before and after a shell command, started in Node": async () => {
        n++;
        return (await timed(inNode, shell("PreToolUse"))) + (await timed(inNode, shell("PostToolUse")));
      },
    });
    const { empty, ...ours } = figures;
    const [before, after] = [ours["before a shell command"], ours["after it, with a look at the work tree"]];
    return [
      { suite: "hook", what: "an empty hook, median", value: median(empty), unit: " ms", goal: null },
      ...Object.entries(ours).map(([what, times]) => ({
        suite: "hook",
        what: `added ${what}`,
        value: median(times.map((ms, i) => ms - empty[i]! * (what.endsWith("in Node") ? 2 : 1))),
        unit: " ms",
        goal: null,
      })),
      {
        suite: "hook",
        what: "added before and after a shell command together",
        value: median(before.map((ms, i) => ms + after[i]! - 2 * empty[i]!)),
        unit: " ms",
        goal: { at_most: 20 },
      },
    ];
  } finally {
    await stopped(child);
    for (const made of [folder, work]) rmSync(made, { recursive: true, force: true });
  }
}
