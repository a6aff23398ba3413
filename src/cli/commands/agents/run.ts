/** `svc run -- <command>`: starts an agent that writes only to its workspace and reaches only the governed proxy. */
import { randomBytes, randomUUID } from "node:crypto";
import {
  chmodSync,
  cpSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  watch,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { bwrapArguments, type ConfinementPlan } from "../../../child-process/confine/bwrap.ts";
import { launchConfined } from "../../../child-process/confine/launch.ts";
import {
  type ResourceLimits,
  resourceLimits,
  type WantedLimits,
} from "../../../child-process/confine/limits.ts";
import { seccompProgram } from "../../../child-process/confine/seccomp.ts";
import { packageFile } from "../../../child-process/package-files.ts";
import { loadSettings } from "../../../config/load.ts";
import type { CredentialSpec } from "../../../config/sections/proxy.ts";
import { keyFileOf, type LoadedSettings, withQuietLog } from "../../../config/settings.ts";
import { hooksFolder } from "../../../hook/settings.ts";
import {
  COMMON_DIR,
  newProtected,
  type ProtectedTree,
  protectedTree,
} from "../../../hook/workspace/protected-tree.ts";
import { invalidError, messageOf, SvcError } from "../../../kernel/errors.ts";
import { sha256Hex } from "../../../kernel/hash.ts";
import { openHttpService } from "../../../service/start/http-undo.ts";
import { createRunProxy, type RunningProxy } from "../../../service/start/proxy.ts";
import { createRemoteRunProxy } from "../../../service/start/remote-proxy.ts";
import {
  type CommandContext,
  type CommandFlags,
  type ExitCode,
  globalOptions,
  type RegisterCommand,
} from "../../context.ts";
import { escapeControls } from "../../io.ts";
import { withAllowedHosts } from "../server/proxy.ts";
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

const collect = (value: string, before: string[] = []): string[] => [...before, value];

export const registerRun: RegisterCommand = (program, context) => {
  globalOptions(program.command("run").description("Start an agent confined to its workspace and the proxy"))
    .argument("<command...>", "the agent's command, after --")
    .option("--workspace <dir>", "directory that the command can write to (default: the current one)")
    .option("--allow-host <host>", "pass this host without a question, private or not; repeatable", collect)
    .option("--policy <file>", "policy file")
    .action((command: string[], flags: CommandFlags) => runConfined(context, command, flags));
};

/** What the machine has to offer. Throws with the way to get it. */
function requirements(context: CommandContext): { bwrap: string; seccomp: Buffer } {
  if (process.platform !== "linux")
    throw invalidError(
      "svc run works on Linux only; on other systems start the agent in a Linux virtual machine",
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
  let decider: Decider | null = null;
  let relay: HookRelay | null = null;
  try {
    const secret = randomBytes(32).toString("hex");
    decider = await openDecider(context, flags, folder, sha256Hex(secret));
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

/** Words that name programs: the command after `env` and its assignments, and the script after `node`. */
function programWords(command: readonly string[]): string[] {
  const [first = "", ...rest] = command;
  const name = basename(first);
  if (name === "env") {
    const at = rest.findIndex((word) => !/^[A-Za-z_]\w*=/.test(word));
    return at < 0 ? [first] : [first, ...programWords(rest.slice(at))];
  }
  const [script] = rest;
  return name === "node" && script !== undefined && !script.startsWith("-") ? [first, script] : [first];
}

/** Decider of the calls of a run: this process with local data, or a server. */
interface Decider {
  readonly running: RunningProxy & { run_id: string };
  readonly credentials: readonly CredentialSpec[];
  readonly limits: WantedLimits;
  /** Files that check the server, with the names of their settings. */
  readonly trusted: Readonly<Record<string, string>>;
  /** What the command does not see: the folder for files of the run that outlast it, and everything of the service. */
  readonly own: { readonly folder: string; readonly paths: readonly string[] };
  close(): Promise<void>;
}

function openDecider(
  context: CommandContext,
  flags: CommandFlags,
  folder: string,
  sandbox: string,
): Promise<Decider> {
  return context.isRemote(flags)
    ? decideOnServer(context, flags, folder, sandbox)
    : decideHere(context, flags, sandbox);
}

async function decideHere(context: CommandContext, flags: CommandFlags, sandbox: string): Promise<Decider> {
  const settings = withAllowedHosts(context.settings(flags, ["policy"]), flags);
  const service = await openHttpService(withQuietLog(settings), context.io.clock);
  const close = () => service.close();
  const running = await createRunProxy(service, sandbox).catch(async (error: unknown) => {
    await close();
    throw error;
  });
  return {
    running,
    credentials: settings.credentials,
    limits: settings.run,
    trusted: settings.approvers === null ? {} : { approvers: settings.approvers },
    own: { folder: settings.data, paths: ownPaths(settings) },
    close: () => running.stop().finally(close),
  };
}

async function decideOnServer(
  context: CommandContext,
  flags: CommandFlags,
  folder: string,
  sandbox: string,
): Promise<Decider> {
  const { io } = context;
  if (flags["policy"] !== undefined) throw invalidError("--policy: the server decides by its own policy");
  const server = context.server(flags)!;
  // A configuration file in the workspace is the agent's to write.
  const { SVC_CONFIG: _, ...rest } = io.env;
  const trusted = trustedFiles(io);
  const env = { ...rest, ...trusted };
  const settings = withAllowedHosts(loadSettings({ env, cwd: folder }), flags);
  const own_folder = dirname(hooksFolder(io.env));
  const running = await createRemoteRunProxy({ server, settings, env: io.clock, own_folder }, sandbox);
  if (!running.is_sandboxed)
    io.err("svc run: the key has no may_sandbox, so rules with sandboxed: allow ask as outside");
  const keyFile = flags["keyFile"] as string | undefined;
  return {
    running,
    credentials: [],
    limits: settings.run,
    trusted,
    own: {
      folder: own_folder,
      paths: [own_folder, ...(keyFile === undefined ? [] : [resolve(io.cwd, keyFile)])],
    },
    close: running.stop,
  };
}

/** Variables with the files that check a server, as full paths. */
function trustedFiles({ env, cwd }: CommandContext["io"]): Record<string, string> {
  if ((env["SVC_APPROVERS"] ?? "") === "") return {};
  const named = ["SVC_APPROVERS", "SVC_MANIFESTS"].flatMap((name) => {
    const value = env[name];
    return value === undefined || value === "" || /^https?:/.test(value) ? [] : [[name, resolve(cwd, value)]];
  });
  return Object.fromEntries(named);
}

interface ConfinedClient {
  readonly state: CopiedState | null;
  readonly relay: HookRelay | null;
}

function planConfinement(
  { home, workspace, folder, programs, placeholders }: RunPlace,
  { own, credentials }: Decider,
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
    env: { ...confinedEnv(home, node, credentials), ...state?.env },
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

/** Files and directories of the service, which the command does not see even inside its workspace. */
function ownPaths(settings: LoadedSettings): string[] {
  const { data, signing_key, token_key, kill_file, meta } = settings;
  const files = [keyFileOf(settings), signing_key, token_key, kill_file, meta.file, data];
  const secrets = settings.credentials.flatMap(({ from }) => ("file" in from ? [from.file] : []));
  return [...files, ...secrets].flatMap((path) => (path === null ? [] : [resolve(path)]));
}

/** Moves files that came in and would run by themselves later, so that a person looks at them first. */
function moveAway({ io }: CommandContext, workspace: string, added: readonly string[], into: string): void {
  if (added.length === 0) return;
  for (const path of added) {
    const to = join(into, relative(workspace, path));
    mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
    try {
      renameSync(path, to);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EXDEV")
        throw new SvcError("unavailable", messageOf(error));
      cpSync(path, to, { recursive: true, verbatimSymlinks: true });
      rmSync(path, { recursive: true });
    }
  }
  chmodSync(into, 0o700);
  io.err(
    `svc run: ${added.length} new files would run by themselves; look at them in ${escapeControls(into)}`,
  );
  for (const path of added) io.err(`  ${escapeControls(relative(workspace, path))}`);
}
