/** What the hook adds to a coding agent's call: its whole process, against one that does nothing. */
import { spawn } from "node:child_process";
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

function timed(args: string[], input: string): Promise<number> {
  const start = performance.now();
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
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

async function medianOf(once: () => Promise<number>): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < CALLS_A_ROUND; i++) times.push(await once());
  return median(times);
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
  writeFileSync(join(folder, "empty.mjs"), 'import { readFileSync } from "node:fs";\nreadFileSync(0);\n');
  write("hook.json", { server: `http://127.0.0.1:${port}`, protect: [] });
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
  const event = (tool_name: string, tool_input: object) =>
    JSON.stringify({
      session_id: "bench",
      cwd: work,
      hook_event_name: "PreToolUse",
      tool_name,
      tool_input,
      tool_use_id: `call-${n++}`,
    });
  const hook = [SVC, "hook", "claude-code", "--settings", join(folder, "hook.json")];
  const shell = () => event("Bash", { command: "ls -la src | head" });
  const edit = () => event("Write", { file_path: join(work, "a.txt"), content: "x" });
  writeFileSync(join(work, "a.txt"), "a line\n".repeat(1_000));
  try {
    for (let tries = 0; ; tries++) {
      const up = await timed(hook, shell()).catch(() => null);
      if (up !== null) break;
      if (tries > 300) throw new Error("the server did not start");
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    const figures = await alternate(rounds, {
      empty: () => medianOf(() => timed([join(folder, "empty.mjs")], shell())),
      shell: () => medianOf(() => timed(hook, shell())),
      edit: () => medianOf(() => timed(hook, edit())),
    });
    const over = (of: readonly number[]) => median(of.map((ms, i) => ms - figures.empty[i]!));
    return [
      { suite: "hook", what: "an empty hook, median", value: median(figures.empty), unit: " ms", goal: null },
      {
        suite: "hook",
        what: "added before a shell command",
        value: over(figures.shell),
        unit: " ms",
        goal: { at_most: 50 },
      },
      {
        suite: "hook",
        what: "added before an edit",
        value: over(figures.edit),
        unit: " ms",
        goal: { at_most: 50 },
      },
    ];
  } finally {
    await stopped(child);
    for (const made of [folder, work]) rmSync(made, { recursive: true, force: true });
  }
}
