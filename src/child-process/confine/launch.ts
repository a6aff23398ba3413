/**
 * Starts a command in its confinement. Inside, a short script opens the only network socket, passes it to this process,
 * closes every other descriptor and becomes the command.
 */
import { spawn } from "node:child_process";
import type { Server, Socket } from "node:net";
import type { Writable } from "node:stream";
import { SvcError } from "../../kernel/errors.ts";
import type { ResourceLimits } from "./limits.ts";

const DOOR_PORT = 3_128;
export const DOOR_URL = `http://127.0.0.1:${DOOR_PORT}`;

interface Confined {
  readonly bwrap: string;
  readonly node: string;
  readonly args: readonly string[];
  readonly seccomp: Buffer;
  readonly limits: ResourceLimits;
  readonly command: readonly string[];
  /** Without a terminal: the launcher passes Ctrl-C on. */
  readonly new_session: boolean;
  /** A connection from inside. */
  connected(socket: Socket): void;
  /** The command is about to start. */
  started(): void;
}

/** Listens inside and sends the listening socket out. Reports a missing command. */
const INNER = `
const { accessSync, statSync, constants } = require("node:fs");
const { resolve } = require("node:path");
const [name] = process.argv.slice(1);
const paths = name.includes("/") ? [resolve(name)] : (process.env.PATH || "").split(":").map((one) => one + "/" + name);
const runs = (path) => { try { accessSync(path, constants.X_OK); return statSync(path).isFile(); } catch { return false; } };
if (!paths.some(runs)) process.send("missing", () => process.exit(1));
else {
  const server = require("node:net").createServer();
  server.listen(${DOOR_PORT}, "127.0.0.1", () => process.send("door", server, () => process.exit(0)));
}`;

const setupOf = (node: string, ulimits: string): string =>
  [
    `NODE_CHANNEL_FD=3 NODE_CHANNEL_SERIALIZATION_MODE=json '${node}' -e "$SVC_INNER" -- "$1" || exit 1`,
    "unset SVC_INNER",
    ulimits,
    'for fd in $(ls /proc/self/fd); do [ "$fd" -gt 2 ] && eval "exec $fd>&-"; done 2>/dev/null',
    'exec "$@"',
  ].join("\n");

/** Resolves to the command's exit code, 128 and the number of a signal. Throws if it could not be started. */
export function launchConfined(confined: Confined): Promise<number> {
  const { bwrap, node, args, seccomp, limits, command } = confined;
  const enter = limits.groups.map((file) => `echo $$ > '${file}' && `).join("");
  const inside = ["/bin/bash", "-c", setupOf(node, limits.ulimits), "svc-run", ...command];
  const child = spawn("/bin/sh", ["-c", `${enter}exec '${bwrap}' --args 4 -- "$@"`, "svc-run", ...inside], {
    env: {},
    stdio: ["inherit", "inherit", "inherit", "ipc", "pipe", "pipe"],
  });
  const everyArgument = [...args, "--setenv", "SVC_INNER", INNER];
  const [, , , , forArguments, forSeccomp] = child.stdio as Writable[];
  feed(forArguments!, Buffer.from(everyArgument.map((one) => `${one}\0`).join("")));
  feed(forSeccomp!, seccomp);
  return new Promise((resolve, reject) => {
    let state: "starting" | "started" | "missing" = "starting";
    child.on("message", (message, handle) => {
      if (message === "missing") state = "missing";
      const door = handle as Server | undefined;
      if (message !== "door" || door === undefined) return;
      state = "started";
      door.on("connection", (socket) => confined.connected(socket));
      child.once("exit", () => door.close());
      confined.started();
    });
    const pass = (signal: NodeJS.Signals) => child.kill(signal);
    // A terminal sends its own to the command as well.
    const interrupt = () => (confined.new_session ? child.kill("SIGINT") : undefined);
    process.on("SIGINT", interrupt);
    process.on("SIGTERM", pass);
    process.on("SIGHUP", pass);
    child.once("error", (error) => reject(startFailure(error.message)));
    child.once("close", (code, signal) => {
      process.removeListener("SIGINT", interrupt);
      process.removeListener("SIGTERM", pass);
      process.removeListener("SIGHUP", pass);
      if (state === "missing")
        reject(
          new SvcError(
            "unavailable",
            `the command was not started: ${command[0]} is not a program that the confined side can see`,
          ),
        );
      else if (state === "starting")
        reject(startFailure(`bubblewrap ended with code ${code ?? signal}, for the reason above`));
      else resolve(exitCodeOf(code, signal));
    });
  });
}

function feed(stream: Writable, bytes: Buffer): void {
  // A start that fails closes its end first; its own message tells why.
  stream.on("error", () => {});
  stream.end(bytes);
}

/** As shells say it: 128 and the number of the signal. */
export function exitCodeOf(code: number | null, signal: NodeJS.Signals | null): number {
  const { constants } = process.getBuiltinModule("node:os");
  return signal === null ? code! : 128 + constants.signals[signal];
}

const NEEDS =
  "it needs user namespaces (sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns) and, in a container, an unmasked /proc";

function startFailure(why: string): SvcError {
  return new SvcError("unavailable", `the command was not started: ${why}; ${NEEDS}`);
}
