/**
 * Transport to a tool server that runs as a child process. The child gets only a few environment variables and the
 * configured ones, and its own process group, which ends with it. Buffers in both directions are limited, and its
 * stderr is always drained.
 */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import { watchGroup } from "../../child-process/orphan-guard.ts";
import { withTimeout } from "../../kernel/timeout.ts";
import { NotSentError } from "./failure.ts";
import { LineSplitter } from "./line-splitter.ts";
import { removeOwnMeta } from "./reserved-meta.ts";

interface ChildCommand {
  command: string;
  args: readonly string[];
  env: Readonly<Record<string, string>>;
  cwd: string | null;
}

const INHERITED = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"] as const;
const MAX_LINE_BYTES = 32 * 1_048_576;
/** Limit of buffered input for a child that does not read. Beyond it, calls are rejected. */
const MAX_UNREAD_BYTES = 8 * 1_048_576;
const STDERR_KEPT_BYTES = 4_096;
/** How long to wait after the exit for output that is still in the pipe. */
const LINGER_MS = 100;
const GRACE_MS = 1_500;

function childVariables(
  configured: Readonly<Record<string, string>>,
  parent: NodeJS.ProcessEnv = process.env,
): Record<string, string> {
  const env: Record<string, string> = {};
  for (const name of INHERITED) {
    const value = parent[name];
    // An exported shell function is code that the child's shell would run.
    if (value !== undefined && !value.startsWith("()")) env[name] = value;
  }
  return { ...env, ...configured };
}

export class ChildTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;

  private readonly spec: ChildCommand;
  private readonly lines = new LineSplitter(MAX_LINE_BYTES);
  private child: ChildProcessWithoutNullStreams | null = null;
  private unwatch: () => void = () => {};
  private stderr = "";
  private closed = false;

  constructor(spec: ChildCommand) {
    this.spec = spec;
  }

  /** The end of its stderr output, which mostly explains a failed start. */
  get complaint(): string {
    return this.stderr.trim();
  }

  start(): Promise<void> {
    const { command, args, env, cwd } = this.spec;
    const child = spawn(command, [...args], {
      detached: true,
      shell: false,
      stdio: "pipe",
      env: childVariables(env),
      ...(cwd === null ? {} : { cwd }),
    });
    this.child = child;
    if (child.pid !== undefined) this.unwatch = watchGroup(child.pid);
    this.listen(child);
    return new Promise((resolve, reject) => {
      child.once("spawn", resolve);
      child.once("error", (error) => {
        reject(error);
        this.finish();
      });
    });
  }

  private listen(child: ChildProcessWithoutNullStreams): void {
    child.stdout.on("data", (chunk: Buffer) => {
      const fits = this.lines.push(chunk, (line) => this.read(line));
      if (!fits) this.giveUp(`it wrote a line of more than ${MAX_LINE_BYTES} bytes`);
    });
    child.stderr.on("data", (chunk: Buffer) => {
      this.stderr = (this.stderr + chunk.toString("utf8")).slice(-STDERR_KEPT_BYTES);
    });
    for (const stream of [child.stdin, child.stdout, child.stderr]) {
      stream.on("error", (error) => this.onerror?.(error));
    }
    child.once("close", () => this.finish());
    // A grandchild may keep the pipe open forever. The child's own output has arrived by now.
    child.once("exit", () => setTimeout(() => this.finish(), LINGER_MS));
  }

  private read(line: string): void {
    let message: unknown;
    try {
      message = JSON.parse(line);
    } catch {
      // Some servers print other text to stdout, which is ignored.
      return;
    }
    if (typeof message !== "object" || message === null || Array.isArray(message)) return;
    this.onmessage?.(removeOwnMeta(message as JSONRPCMessage));
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.child?.stdin;
    if (this.closed || stdin === undefined || !stdin.writable)
      throw new NotSentError("its process has ended");
    if (stdin.writableLength > MAX_UNREAD_BYTES) throw new NotSentError("it has stopped reading its input");
    stdin.write(`${JSON.stringify(message)}\n`);
  }

  private giveUp(why: string): void {
    this.onerror?.(new Error(why));
    this.kill("SIGKILL");
    this.finish();
  }

  /** Stops the child in steps: ends its input, then sends SIGTERM, then SIGKILL to its whole process group. */
  async close(): Promise<void> {
    const { child } = this;
    if (child === null || this.closed) return;
    const gone = new Promise<true>((resolve) => child.once("exit", () => resolve(true)));
    child.stdin.end();
    if (
      child.exitCode === null &&
      child.signalCode === null &&
      !(await withTimeout(gone, GRACE_MS, () => false))
    ) {
      this.kill("SIGTERM");
      await withTimeout(gone, GRACE_MS, () => false);
    }
    this.kill("SIGKILL");
    this.finish();
  }

  private kill(signal: NodeJS.Signals): void {
    const pid = this.child?.pid;
    if (pid === undefined) return;
    try {
      process.kill(-pid, signal);
    } catch {
      // The group has already ended.
    }
  }

  private finish(): void {
    if (this.closed) return;
    this.closed = true;
    const { child } = this;
    this.kill("SIGKILL");
    for (const stream of [child?.stdin, child?.stdout, child?.stderr]) stream?.destroy();
    child?.unref();
    this.unwatch();
    this.onclose?.();
  }
}
