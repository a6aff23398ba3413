/** The command `svc` as a person would run it: in a process, or in this one where a process makes no difference. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { CommandIo } from "../../src/cli/io.ts";

export const BIN = fileURLToPath(new URL("../../bin/svc.js", import.meta.url));
const ROOT = join(BIN, "..", "..");

export interface CliResult {
  code: number | null;
  out: string;
  err: string;
}

export interface CliOptions {
  cwd?: string;
  env?: Record<string, string>;
  input?: string;
}

/** Only these variables: what the tester's own environment holds must not matter. */
const base = () => ({ PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "" });

type Command = typeof import("../../src/cli/command.ts");

/** Commands that serve, take over the standard streams, or are about their process. */
const NEED_PROCESS = /^(?:server|gateway|proxy|run|hook|console|demo|login|watch|witness)$/;
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

let command: Promise<(Command & { io: CommandIo }) | undefined> | undefined;
let is_busy = false;

/**
 * Runs `svc` and waits for its end. A process for each takes 0.3 s of processor time, of which the command itself takes
 * a tenth: so it runs in this process, from the compiled script, where it needs none of its own.
 */
export async function svc(args: string[], options: CliOptions = {}): Promise<CliResult> {
  const needs_process =
    options.input !== undefined ||
    args.some((word) => NEED_PROCESS.test(word)) ||
    Object.keys(options.env ?? {}).some((name) => name.startsWith("NODE_"));
  if (is_busy || needs_process) return svcProcess(args, options);
  is_busy = true;
  try {
    command ??= compiled();
    const loaded = await command;
    return loaded === undefined ? await svcProcess(args, options) : await runHere(loaded, args, options);
  } finally {
    is_busy = false;
  }
}

/** The build's own script, which the executable runs too. */
async function compiled(): Promise<(Command & { io: CommandIo }) | undefined> {
  const { compiledCommand } = await import(pathToFileURL(join(ROOT, "dist/cli/compiled-command.js")).href);
  const loaded: Command | undefined = compiledCommand();
  return loaded && { ...loaded, io: loaded.processIo() };
}

/** As a process: with its own environment, directory and signal handlers for as long as it runs. */
async function runHere(
  { runCommandLine, io }: Command & { io: CommandIo },
  args: string[],
  { cwd = ROOT, env = {} }: CliOptions,
): Promise<CliResult> {
  const [outer, directory, program] = [{ ...process.env }, process.cwd(), process.argv[1]!];
  const heard = SIGNALS.map((signal) => process.listeners(signal));
  let [out, err] = ["", ""];
  try {
    enter({ ...base(), ...env }, cwd, BIN);
    const code = await runCommandLine(args, {
      ...io,
      out: (text) => {
        out += `${text}\n`;
      },
      err: (text) => {
        err += `${text}\n`;
      },
      write: async (chunk) => {
        out += chunk;
      },
      env: { ...process.env },
      cwd,
    });
    return { code, out, err };
  } finally {
    enter(outer, directory, program);
    for (const [i, signal] of SIGNALS.entries())
      for (const listener of process.listeners(signal))
        if (!heard[i]!.includes(listener)) process.off(signal, listener);
  }
}

function enter(env: NodeJS.ProcessEnv, cwd: string, program: string): void {
  for (const name of Object.keys(process.env)) if (env[name] === undefined) delete process.env[name];
  Object.assign(process.env, env);
  process.chdir(cwd);
  process.argv[1] = program;
}

/** The same in a process of its own. */
export function svcProcess(args: string[], options: CliOptions = {}): Promise<CliResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [BIN, ...args], {
      cwd: options.cwd ?? ROOT,
      env: { ...base(), ...options.env },
      stdio: ["pipe", "pipe", "pipe"],
    });
    let out = "";
    let err = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      out += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      err += text;
    });
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, out, err }));
    child.stdin.on("error", () => {});
    child.stdin.end(options.input ?? "");
  });
}

export interface ServerProcess {
  url: string;
  pid: number;
  output(): string;
  /** Ends it with the signal and answers its exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

/** A separate server process on a free port; resolves once it listens. `program`: another Node, another installation. */
export function startSvcServer(
  args: string[],
  options: CliOptions & { program?: readonly [node: string, bin: string] } = {},
): Promise<ServerProcess> {
  const [node, bin] = options.program ?? [process.execPath, BIN];
  const child = spawn(node, [bin, "server", "--port", "0", ...args], {
    cwd: options.cwd,
    env: { ...base(), ...options.env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  const ended = new Promise<number | null>((resolve) => child.once("exit", (code) => resolve(code)));
  return new Promise((resolve, reject) => {
    const hear = (text: string) => {
      output += text;
      const url = /listening on (http:\S+)/.exec(output)?.[1];
      if (url === undefined) return;
      resolve({
        url,
        pid: child.pid!,
        output: () => output,
        async stop(signal = "SIGTERM") {
          child.kill(signal);
          return ended;
        },
      });
    };
    child.stdout.setEncoding("utf8").on("data", hear);
    child.stderr.setEncoding("utf8").on("data", hear);
    void ended.then((code) => reject(new Error(`the server ended with code ${code}: ${output}`)));
  });
}
