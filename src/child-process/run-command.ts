/**
 * Runs a user command to its end, even if it hangs, floods its output, leaves children behind or closes its input. The
 * command gets no shell, few variables, its own process group and a deadline. At the deadline, the whole group is
 * killed.
 */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { SERVICE_LIMITS } from "../kernel/limits.ts";
import { childEnv } from "./child-env.ts";
import { watchGroup } from "./orphan-guard.ts";

export interface CommandOptions {
  /** The command's stdin. */
  input: string;
  timeout_ms: number;
  signal?: AbortSignal | undefined;
  max_output_bytes?: number | undefined;
  env?: Record<string, string> | undefined;
  cwd?: string | undefined;
}

/** Why this process ended the command early. */
type CutShort = "timeout" | "aborted" | "output";

export interface CommandResult {
  /** The exit code, or null after a signal or a failed start. */
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  /** The tail of stderr. */
  stderr: string;
  cut_short: CutShort | null;
  /** Why the command could not start, such as ENOENT. */
  not_started: string | null;
}

/** The time between SIGTERM and SIGKILL. */
const TERM_TO_KILL_MS = 2_000;
/** How long to wait for output after the command has exited, if a child of it still holds the pipe. */
const LINGER_MS = 250;
const STDERR_KEPT_BYTES = 16_384;

export function runCommand(argv: readonly string[], options: CommandOptions): Promise<CommandResult> {
  const nothing = { code: null, signal: null, stdout: "", stderr: "", cut_short: null, not_started: null };
  if (options.signal?.aborted) return Promise.resolve({ ...nothing, cut_short: "aborted" });
  let child: ChildProcessWithoutNullStreams;
  try {
    child = spawn(argv[0]!, argv.slice(1), {
      detached: true,
      shell: false,
      stdio: "pipe",
      env: options.env ?? childEnv(),
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    });
  } catch (error) {
    return Promise.resolve({ ...nothing, not_started: startProblem(error) });
  }
  return new Promise((resolve) => new Running(child, options, resolve));
}

function startProblem(error: unknown): string {
  const { code } = error as { code?: unknown };
  return typeof code === "string" ? code : "it could not be started";
}

class Running {
  private readonly child: ChildProcessWithoutNullStreams;
  private readonly options: CommandOptions;
  private readonly resolve: (result: CommandResult) => void;
  private readonly stdout: Buffer[] = [];
  private stdoutBytes = 0;
  private stderr = Buffer.alloc(0);
  private cut_short: CutShort | null = null;
  private not_started: string | null = null;
  private exit: { code: number | null; signal: NodeJS.Signals | null } | null = null;
  private readonly timers = new Set<NodeJS.Timeout>();
  private readonly unwatch: () => void;
  private finished = false;

  constructor(
    child: ChildProcessWithoutNullStreams,
    options: CommandOptions,
    resolve: (result: CommandResult) => void,
  ) {
    this.child = child;
    this.options = options;
    this.resolve = resolve;
    this.unwatch = child.pid === undefined ? () => {} : watchGroup(child.pid);
    this.listen();
    options.signal?.addEventListener("abort", this.onAbort, { once: true });
    this.after(options.timeout_ms, () => this.cutShort("timeout"));
    // A command can end without reading its input. That is not an error.
    child.stdin.on("error", () => {});
    child.stdin.end(options.input);
  }

  private listen(): void {
    const { child } = this;
    child.stdout.on("data", (chunk: Buffer) => this.onStdout(chunk));
    child.stderr.on("data", (chunk: Buffer) => {
      const all = Buffer.concat([this.stderr, chunk]);
      this.stderr =
        all.length > STDERR_KEPT_BYTES ? Buffer.from(all.subarray(all.length - STDERR_KEPT_BYTES)) : all;
    });
    child.stdout.on("error", () => {});
    child.stderr.on("error", () => {});
    child.once("error", (error) => {
      if (child.pid !== undefined) return;
      this.not_started = startProblem(error);
      this.finish();
    });
    child.once("exit", (code, signal) => {
      this.exit = { code, signal };
      // A grandchild may hold the pipe forever. The command's own output has arrived by now, and this process reads it
      // before the next turn of the event loop, even after a long stall.
      this.after(LINGER_MS, () =>
        setImmediate(() => {
          this.kill("SIGKILL");
          this.finish();
        }),
      );
    });
    child.once("close", () => this.finish());
  }

  private onStdout(chunk: Buffer): void {
    if (this.cut_short !== null) return;
    this.stdoutBytes += chunk.length;
    if (this.stdoutBytes <= (this.options.max_output_bytes ?? SERVICE_LIMITS.child_output_bytes))
      this.stdout.push(chunk);
    else this.cutShort("output");
  }

  private readonly onAbort = (): void => this.cutShort("aborted");

  private cutShort(why: CutShort): void {
    if (this.finished || this.cut_short !== null) return;
    this.cut_short = why;
    this.kill("SIGTERM");
    this.after(TERM_TO_KILL_MS, () => {
      this.kill("SIGKILL");
      // Do not wait for an unkillable process (stuck in the kernel).
      this.after(LINGER_MS, () => this.finish());
    });
  }

  private kill(signal: NodeJS.Signals): void {
    const { pid } = this.child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, signal);
    } catch {
      // The group is already gone.
    }
  }

  private finish(): void {
    if (this.finished) return;
    this.finished = true;
    if (this.cut_short !== null) this.kill("SIGKILL");
    for (const timer of this.timers) clearTimeout(timer);
    this.options.signal?.removeEventListener("abort", this.onAbort);
    for (const stream of [this.child.stdin, this.child.stdout, this.child.stderr]) stream.destroy();
    this.child.unref();
    this.unwatch();
    this.resolve({
      code: this.exit?.code ?? null,
      signal: this.exit?.signal ?? null,
      stdout: Buffer.concat(this.stdout).toString("utf8"),
      stderr: this.stderr.toString("utf8"),
      cut_short: this.cut_short,
      not_started: this.not_started,
    });
  }

  private after(ms: number, act: () => void): void {
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      act();
    }, ms);
    this.timers.add(timer);
  }
}
