/** `svc run -- <command>`: starts an agent that writes only to its workspace and reaches only the governed proxy. */
import { randomBytes, randomUUID } from "node:crypto";
import { lstatSync, mkdtempSync, realpathSync, rmSync, watch } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { bwrapArguments, type ConfinementPlan, RUN_PLACE } from "../../../child-process/confine/bwrap.ts";
import { DOOR_URL, launchConfined } from "../../../child-process/confine/launch.ts";
import { type ResourceLimits, resourceLimits } from "../../../child-process/confine/limits.ts";
import { seccompProgram } from "../../../child-process/confine/seccomp.ts";
import { packageFile } from "../../../child-process/package-files.ts";
import { hooksFolder } from "../../../hook/settings.ts";
import {
  COMMON_DIR,
  newProtected,
  type ProtectedTree,
  protectedTree,
} from "../../../hook/workspace/protected-tree.ts";
import { invalidError } from "../../../kernel/errors.ts";
import { sha256Hex } from "../../../kernel/hash.ts";
import {
  type CommandContext,
  type CommandFlags,
  type ExitCode,
  globalOptions,
  type RegisterCommand,
} from "../../context.ts";
import { escapeControls } from "../../io.ts";
import { type CopiedState, copyClientState } from "./client-state.ts";
import {
  checkedWorkspace,
  confinedEnv,
  findProgram,
  isBelow,
  MountPlaceholders,
  placesOfProgram,
  protectWorkspace,
  replacedBundles,
  topDirectories,
  userOf,
  writeRunFiles,
} from "./confinement.ts";
import { type HookRelay, hasHooks, hookMounts, startHookRelay } from "./hook-relay.ts";
import { openDecider, type RunDecider } from "./run-decider.ts";
import { moveAway, programWords } from "./run-files.ts";
import { runOnMac } from "./run-on-mac.ts";

const collect = (value: string, before: string[] = []): string[] => [...before, value];

export const registerRun: RegisterCommand = (program, context) => {
  globalOptions(program.command("run").description("Start an agent confined to its workspace and the proxy"))
    .argument("<command...>", "the agent's command, after --")
    .option("--workspace <dir>", "directory that the command can write to (default: the current one)")
    .option("--allow-host <host>", "let connections to this host pass without approval; repeatable", collect)
    .option("--policy <file>", "policy file")
    .action((command: string[], flags: CommandFlags) => runConfined(context, command, flags));
};

/** What the machine has to offer. Throws with the way to get it. */
function requirements(context: CommandContext): { bwrap: string; seccomp: Buffer } {
  if (process.platform !== "linux")
    throw invalidError(
      "svc run works on Linux, and untested on macOS; elsewhere start the agent in a Linux virtual machine",
    );
  const bwrap = findProgram("bwrap", context.io.env, "/");
  if (bwrap === undefined)
    throw invalidError(
      "svc run needs bubblewrap: install it with sudo apt-get install bubblewrap, or the package of your system",
    );
  const seccomp = seccompProgram(process.arch);
  if (seccomp === null) throw invalidError("svc run knows the system calls of x86-64 and arm64 only");
  return { bwrap, seccomp };
}

/** What a run confines, and where. */
interface RunPlace {
  readonly home: string;
  readonly workspace: string;
  /** Directory of this run's own files. */
  readonly folder: string;
  /** Programs that the command names, such as `env`, `node` and a script. Empty if only the confined side knows them. */
  readonly programs: readonly string[];
  readonly placeholders: MountPlaceholders;
}

async function runConfined(context: CommandContext, command: string[], flags: CommandFlags): Promise<void> {
  if (process.platform === "darwin") return runOnMac(context, command, flags);
  const { io } = context;
  const needs = requirements(context);
  const home = realpathSync(io.env["HOME"] || "/root");
  const given = (flags["workspace"] as string | undefined) ?? ".";
  const place: RunPlace = {
    home,
    workspace: checkedWorkspace(resolve(io.cwd, given), home),
    folder: mkdtempSync(join(tmpdir(), "svc-run-")),
    programs: programWords(command).flatMap((word) => findProgram(word, io.env, io.cwd) ?? []),
    placeholders: new MountPlaceholders(),
  };
  const { workspace, folder, placeholders } = place;
  const program = findProgram(command[0]!, io.env, io.cwd);
  let limits: ResourceLimits | null = null;
  let decider: RunDecider | null = null;
  let relay: HookRelay | null = null;
  try {
    const secret = randomBytes(32).toString("hex");
    decider = await openDecider(context, flags, folder, { sandbox: sha256Hex(secret) });
    const { running, own } = decider;
    const { run_id } = running;
    limits = resourceLimits(`svc-run-${randomUUID()}`, decider.limits);
    const hooks = hooksFolder(io.env);
    if (hasHooks(hooks)) relay = await startHookRelay(hooks, folder, { run_id, secret, workspace });
    const before = protectedTree(workspace);
    const state = copyClientState(programWords(command).at(-1)!, home, folder);
    writeRunFiles(folder, home, running.ca_pem);
    const plan = planConfinement(place, decider, before, { state, relay });
    for (const [name, file] of Object.entries(decider.trusted)) requireOutside(name, file, plan);
    io.err(`svc run: ${run_id} in ${escapeControls(workspace)}, at most ${limits.told}`);
    const code = await launchConfined({
      ...needs,
      node: realpathSync(process.execPath),
      args: bwrapArguments(plan),
      limits,
      new_session: plan.new_session,
      command: [program === undefined ? command[0]! : realpathSync(program), ...command.slice(1)],
      connected: (socket) => running.proxy.server.emit("connection", socket),
      started: () => relay?.hide(),
    }).finally(guardRepositories(before, io.err));
    placeholders.remove();
    state?.bringBack();
    const added = newProtected(workspace, before);
    moveAway(context, workspace, added, join(own.folder, "moved", run_id));
    context.done(code as ExitCode);
  } finally {
    await relay?.close();
    placeholders.remove();
    limits?.remove();
    await decider?.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Removes a file that would give git other hooks, as soon as the command makes it: git runs outside at the same time.
 * Returns the end of the watch.
 */
function guardRepositories({ repositories, marks }: ProtectedTree, tell: (text: string) => void): () => void {
  const watchers = repositories.map((repository) => {
    const path = join(repository, COMMON_DIR);
    const look = () => {
      if (marks.has(path) || lstatSync(path, { throwIfNoEntry: false }) === undefined) return;
      rmSync(path, { recursive: true, force: true });
      tell(`svc run: removed ${escapeControls(path)}, which would give git other hooks`);
    };
    return watch(repository, look).on("error", () => {});
  });
  return () => {
    for (const watcher of watchers) watcher.close();
  };
}

interface ConfinedClient {
  readonly state: CopiedState | null;
  readonly relay: HookRelay | null;
}

function planConfinement(
  { home, workspace, folder, programs, placeholders }: RunPlace,
  { own, credentials }: RunDecider,
  tree: ProtectedTree,
  { state, relay }: ConfinedClient,
): ConfinementPlan {
  const guarded = protectWorkspace(workspace, tree, own.paths, placeholders);
  const node = realpathSync(process.execPath);
  return {
    ...guarded,
    ...topDirectories(),
    workspace,
    home,
    run_folder: folder,
    replaced: [...replacedBundles(folder), ...(state?.read_only ?? [])],
    hook_mounts: relay === null ? [] : hookMounts(relay, home),
    writable: [...guarded.writable, ...(state === null ? [] : [[state.from, state.to] as const])],
    programs: [
      ...[node, ...programs].flatMap((path) => placesOfProgram(path, workspace)),
      ...(relay === null ? [] : ownProgram()),
    ],
    env: { ...confinedEnv({ home, node, credentials, proxy: DOOR_URL, files: RUN_PLACE }), ...state?.env },
    new_session: !process.stdin.isTTY,
    as_user: userOf(),
  };
}

/** This package's own files, which the hook starts. */
const ownProgram = (): string[] =>
  ["bin", "dist", "package.json"].map((name) => fileURLToPath(packageFile(name)));

/** Throws if the command could write this file: it could name its own approvers, or rename what needs them. */
function requireOutside(name: string, file: string, { workspace, writable }: ConfinementPlan): void {
  const folders = [workspace, ...writable.map(([folder]) => folder)];
  if ([file, realpathSync(file)].some((path) => folders.some((folder) => isBelow(path, folder))))
    throw invalidError(`${name}: the command could write ${file}: move it out of the workspace`);
}
