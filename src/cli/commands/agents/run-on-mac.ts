/**
 * `svc run` on macOS, by `sandbox-exec`. Untested there, which the output reports. Differs from Linux: no own network, so
 * the proxy listens on loopback and asks for a password, and hooks cannot reach the service.
 */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { exitCodeOf } from "../../../child-process/confine/launch.ts";
import { seatbeltProfile } from "../../../child-process/confine/seatbelt.ts";
import { linkedRepositories } from "../../../hook/workspace/git-paths.ts";
import {
  decidingGitPaths,
  newProtected,
  PROTECTED_FILES,
  PROTECTED_FOLDERS,
  type ProtectedTree,
  protectedTree,
} from "../../../hook/workspace/protected-tree.ts";
import { invalidError, SvcError } from "../../../kernel/errors.ts";
import { sha256Hex } from "../../../kernel/hash.ts";
import { listenOn } from "../../../service/start/proxy.ts";
import type { CommandContext, CommandFlags, ExitCode } from "../../context.ts";
import { escapeControls } from "../../io.ts";
import { copyClientState } from "./client-state.ts";
import { checkedWorkspace, confinedEnv, findProgram, placesOfProgram, writeRunFiles } from "./confinement.ts";
import { openDecider, type RunDecider } from "./run-decider.ts";
import { moveAway, programWords } from "./run-files.ts";

const UNTESTED =
  "untested on macOS: do not rely on it; memory is not limited, and hooks do not reach the service";

export async function runOnMac(
  context: CommandContext,
  command: string[],
  flags: CommandFlags,
): Promise<void> {
  const { io } = context;
  const sandbox = findProgram("sandbox-exec", io.env, "/");
  if (sandbox === undefined) throw invalidError("svc run needs sandbox-exec, which is part of macOS");
  const given = (flags["workspace"] as string | undefined) ?? ".";
  const workspace = checkedWorkspace(resolve(io.cwd, given), realpathSync(io.env["HOME"] || "/var/root"));
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "svc-run-")));
  const password = randomBytes(32).toString("hex");
  let decider: RunDecider | null = null;
  try {
    // Nothing inside can prove that it is confined: without the relay of hooks, no decision asks.
    const sandbox_hash = sha256Hex(randomBytes(32).toString("hex"));
    decider = await openDecider(context, flags, folder, { sandbox: sandbox_hash, password });
    const { running, own } = decider;
    const url = new URL(await listenOn(running, "127.0.0.1", 0));
    const before = protectedTree(workspace);
    const { env, bringBack } = prepareHome(context, command, { folder, url, password, decider });
    const profile = seatbeltProfile({
      workspace,
      run_folder: folder,
      protected: protectedPaths(workspace, before),
      hidden: [...before.hidden, ...before.sockets, ...own.paths, ...Object.values(decider.trusted)],
      programs: programsOf(context, command, workspace),
      proxy_port: Number(url.port),
    });
    io.err(`svc run: ${running.run_id} in ${escapeControls(workspace)}, ${UNTESTED}`);
    const limits = `ulimit -c 0; ulimit -u ${decider.limits.processes} || exit 1; exec "$@"`;
    const words = ["-p", profile, "/bin/bash", "-c", limits, "svc-run", ...command];
    const code = await runToEnd(sandbox, words, workspace, env);
    bringBack();
    moveAway(context, workspace, newProtected(workspace, before), join(own.folder, "moved", running.run_id));
    context.done(code as ExitCode);
  } finally {
    await decider?.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface RunHome {
  readonly folder: string;
  readonly url: URL;
  readonly password: string;
  readonly decider: RunDecider;
}

/** A home directory for the run, with a copy of the client's state. */
function prepareHome({ io }: CommandContext, command: readonly string[], run: RunHome) {
  const { folder, url, password, decider } = run;
  const home = join(folder, "home");
  const temporary = join(folder, "tmp");
  for (const path of [home, temporary]) mkdirSync(path, { mode: 0o700 });
  const state = copyClientState(programWords(command).at(-1)!, io.env["HOME"] ?? "", home);
  writeRunFiles(folder, home, decider.running.ca_pem);
  const proxy = `http://agent:${password}@${url.host}`;
  const node = realpathSync(process.execPath);
  const inside = confinedEnv({ home, node, credentials: decider.credentials, proxy, files: folder });
  const named = Object.keys(state?.env ?? {}).map((name) => [name, state!.from] as const);
  const env = {
    ...inside,
    ...Object.fromEntries(named),
    PATH: `/opt/homebrew/bin:${inside["PATH"]}`,
    TMPDIR: temporary,
  };
  return { env, bringBack: () => state?.bringBack() };
}

/** Read-only whether they exist or not. */
function protectedPaths(workspace: string, tree: ProtectedTree): string[] {
  const repositories = [...tree.repositories, ...linkedRepositories(workspace)];
  return [
    ...tree.read_only,
    // The repository itself is the command's to write, but for what decides about git.
    ...[...PROTECTED_FOLDERS, ...PROTECTED_FILES]
      .filter((name) => name !== ".git" || repositories.length === 0)
      .map((name) => join(workspace, name)),
    ...repositories.flatMap((path) => decidingGitPaths(path, workspace)),
  ];
}

const programsOf = ({ io }: CommandContext, command: readonly string[], workspace: string): string[] =>
  [realpathSync(process.execPath), ...programWords(command)]
    .flatMap((word) => findProgram(word, io.env, io.cwd) ?? [])
    .flatMap((path) => placesOfProgram(path, workspace));

function runToEnd(program: string, args: string[], cwd: string, env: Record<string, string>) {
  const child = spawn(program, args, { cwd, env, stdio: "inherit" });
  const pass = (signal: NodeJS.Signals) => child.kill(signal);
  const wait = () => {};
  process.on("SIGINT", wait).on("SIGTERM", pass).on("SIGHUP", pass);
  return new Promise<number>((settle, reject) => {
    child.once("error", (error) =>
      reject(new SvcError("unavailable", `the command was not started: ${error.message}`)),
    );
    child.once("close", (code, signal) => settle(exitCodeOf(code, signal)));
  }).finally(() => {
    process.removeListener("SIGINT", wait).removeListener("SIGTERM", pass).removeListener("SIGHUP", pass);
  });
}
