import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { isGone } from "../../test/support/process-tree.ts";
import { tempDir, tempFile } from "../../test/support/tmp.ts";
import { aMoment, until } from "../../test/support/until.ts";
import { childEnv } from "./child-env.ts";
import { type CommandOptions, runCommand } from "./run-command.ts";

/** For commands in tests that are not about the deadline. */
const PATIENT_MS = 500_000;

const node = (script: string, options: Partial<CommandOptions> = {}) =>
  runCommand([process.execPath, "-e", script], { input: "", timeout_ms: PATIENT_MS, ...options });

/** The id that a script has written; none while it has not, or not yet to the end of its line. */
function pidIn(file: string): number | undefined {
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  return text.endsWith("\n") ? Number(text) : undefined;
}

const gone = (pid: number) => until(() => isGone(pid), `process ${pid} to end`);

describe("runCommand", () => {
  it("gives the input on stdin and hands back output and exit code", async () => {
    const result = await node(
      "process.stdin.on('data', d => process.stdout.write(String(d).toUpperCase())); process.stderr.write('note'); process.exitCode = 3",
      { input: "hello" },
    );
    expect(result).toMatchObject({
      code: 3,
      stdout: "HELLO",
      stderr: "note",
      cut_short: null,
      not_started: null,
    });
  });

  it("says why a command could not be started", async () => {
    const result = await runCommand(["/nowhere/to/be/found"], { input: "x", timeout_ms: 1_000 });
    expect(result).toMatchObject({ code: null, not_started: "ENOENT" });
    const missing = await runCommand(["true"], { input: "", timeout_ms: 1_000, cwd: "/nowhere" });
    expect(missing.not_started).toBe("ENOENT");
  });

  it("does not mind a command that never reads its input", async () => {
    const result = await node("process.exit(0)", { input: "x".repeat(4_000_000) });
    expect(result).toMatchObject({ code: 0, cut_short: null });
  });

  it("ends the whole group at the deadline, also what ignores SIGTERM", async () => {
    const dir = tempDir();
    const script = tempFile(
      "stubborn.sh",
      `trap '' TERM
sh -c 'trap "" TERM; echo $$ > ${dir}/grandchild; while :; do sleep 1; done' &
echo $$ > ${dir}/child
while :; do sleep 1; done`,
    );
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const running = runCommand(["sh", script], { input: "", timeout_ms: 700 });
    const pids = () => ["child", "grandchild"].map((name) => pidIn(join(dir, name)));
    await until(() => !pids().includes(undefined), "both to ignore SIGTERM");
    vi.advanceTimersByTime(700);
    await aMoment();
    expect(pids().map((pid) => isGone(pid!))).toEqual([false, false]);
    vi.advanceTimersByTime(2_000);
    expect((await running).cut_short).toBe("timeout");
    for (const pid of pids()) await gone(pid!);
  });

  it("does not wait for a grandchild that holds the pipe after the command has ended", async () => {
    const dir = tempDir();
    const script = tempFile(
      "leaves.sh",
      `sh -c 'echo $$ > ${dir}/pid; sleep 600' &\nwhile [ ! -s ${dir}/pid ]; do sleep 0.05; done\necho done`,
    );
    const result = await runCommand(["sh", script], { input: "", timeout_ms: PATIENT_MS });
    expect(result).toMatchObject({ code: 0, stdout: "done\n", cut_short: null });
    await gone(pidIn(join(dir, "pid"))!);
  });

  it("stops a flood of output with bounded memory", async () => {
    const before = process.memoryUsage().rss;
    const result = await node(
      "const b = Buffer.alloc(1<<20, 120); const w = () => { while (process.stdout.write(b)); process.stdout.once('drain', w) }; w()",
    );
    expect(result.cut_short).toBe("output");
    expect(result.stdout.length).toBeLessThanOrEqual(1_048_576);
    expect(process.memoryUsage().rss - before).toBeLessThan(200 * 1_048_576);
  });

  it("keeps only the end of a flood on stderr, and lets the command finish", async () => {
    const result = await node(
      "for (let i = 0; i < 40; i++) require('fs').writeSync(2, 'x'.repeat(65536)); require('fs').writeSync(2, 'the end')",
    );
    expect(result.code).toBe(0);
    expect(result.stderr.endsWith("the end")).toBe(true);
    expect(result.stderr.length).toBeLessThan(20_000);
  });

  it("ends the command on request", async () => {
    const controller = new AbortController();
    const running = node("setInterval(() => {}, 1000)", { signal: controller.signal });
    setTimeout(() => controller.abort(), 100);
    expect((await running).cut_short).toBe("aborted");
    expect((await node("1", { signal: controller.signal })).cut_short).toBe("aborted");
  });

  it("ends the children of a process that was killed", async () => {
    const dir = tempDir();
    const script = `
      import { runCommand } from ${JSON.stringify(new URL("./run-command.ts", import.meta.url).href)};
      import { existsSync, readFileSync } from "node:fs";
      runCommand(["sh", "-c", "echo $$ > ${dir}/pid; sleep 600"], { input: "", timeout_ms: 600000 });
      const written = () => existsSync("${dir}/pid") && readFileSync("${dir}/pid", "utf8").endsWith("\\n");
      setInterval(() => written() && process.kill(process.pid, "SIGKILL"), 5);`;
    const result = await runCommand(
      [process.execPath, "--import", "tsx", "--input-type=module", "-e", script],
      { input: "", timeout_ms: PATIENT_MS, cwd: process.cwd() },
    );
    expect(result.signal).toBe("SIGKILL");
    await gone(pidIn(join(dir, "pid"))!);
  });
});

describe("childEnv", () => {
  it("hands on what a program needs to run and nothing of the service's own", () => {
    const env = childEnv({
      PATH: "/bin",
      HOME: "/home/x",
      LC_ALL: "C",
      SVC_DATABASE_URL: "postgres://secret",
      SVC_SIGNING_KEY: "/key",
      AWS_SECRET_ACCESS_KEY: "secret",
      NODE_OPTIONS: "--inspect",
      CRM_TOKEN: "t",
      OTHER: "o",
      SVC_COMMAND_ENV: "CRM_TOKEN, SVC_SIGNING_KEY,MISSING",
    });
    expect(env).toEqual({ PATH: "/bin", HOME: "/home/x", LC_ALL: "C", CRM_TOKEN: "t" });
  });

  it("is what a command gets", async () => {
    process.env["SVC_CANARY"] = "canary";
    const result = await node("process.stdout.write(JSON.stringify(Object.keys(process.env)))");
    delete process.env["SVC_CANARY"];
    const allowed = /^(PATH|HOME|LANG|LC_.*|TZ|TMPDIR|USER|LOGNAME|SHELL|TERM)$/;
    expect((JSON.parse(result.stdout) as string[]).filter((name) => !allowed.test(name))).toEqual([]);
  });
});
