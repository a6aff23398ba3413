/** The command `svc` as a child process, as a person would run it. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const BIN = fileURLToPath(new URL("../../bin/svc.js", import.meta.url));

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

export function svc(args: string[], options: CliOptions = {}): Promise<CliResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [BIN, ...args], {
      cwd: options.cwd ?? join(BIN, "..", ".."),
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
