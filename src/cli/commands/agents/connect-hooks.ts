/**
 * `svc connect <client> --hooks`: adds the hook to a coding agent's settings, registers the workspace and writes the files that its service
 * needs: manifests, policy, keys and configuration. Existing files stay as they are, and so do existing hook settings
 * that no option changes.
 */
import { existsSync, realpathSync } from "node:fs";
import { copyFile, mkdir, rename, writeFile } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { KeyManager } from "../../../auth/key-manager.ts";
import { packageFile } from "../../../child-process/package-files.ts";
import { readIfThere } from "../../../gateway/connect/backup.ts";
import { HOOK_CLIENTS, type HookClient } from "../../../hook/clients/clients.ts";
import {
  HOOK_INSTALLS,
  type HookChoice,
  hooksFile,
  managedHooksFile,
  userHooksFile,
  withHooks,
} from "../../../hook/clients/install.ts";
import { hooksFolder } from "../../../hook/settings.ts";
import { type RegisteredWorkspaces, workspaceOf } from "../../../hook/workspace/registered.ts";
import { parseDuration } from "../../../kernel/duration.ts";
import { invalidError, notFoundError } from "../../../kernel/errors.ts";
import type { CommandContext } from "../../context.ts";
import { type CommandIo, escapeControls } from "../../io.ts";
import { carrierWords } from "./carrier.ts";
import { writeClientFile } from "./client-file.ts";
import {
  homeOf,
  hookedProjectFiles,
  isManaged,
  isTracked,
  refuseAgents,
  settingsFile,
  takeHookOut,
} from "./hook-places.ts";
import { refuseOwnPrograms } from "./own-programs.ts";

const PACK = fileURLToPath(packageFile("packs/coding-agents"));
const HERE = "http://127.0.0.1:8787";
const CONFIG = "svc.config.yaml";

type Flags = Record<string, unknown>;

export async function connectHooks(context: CommandContext, named: string, flags: Flags): Promise<void> {
  const { io } = context;
  if (!(HOOK_CLIENTS as readonly string[]).includes(named))
    throw invalidError(
      `svc does not support hooks of ${escapeControls(named)}; supported are ${HOOK_CLIENTS.join(", ")}`,
    );
  const client = named as HookClient;
  const file = settingsFile(io, client, flags);
  const folder = resolve(io.cwd, (flags["dir"] as string | undefined) ?? hooksFolder(io.env));
  const settings = join(folder, `${client}.json`);
  if (flags["undo"] === true) return disconnectHooks(io, client, { file, settings, flags });
  if (`${io.cwd}/`.startsWith(`${folder}/`))
    throw invalidError(
      "--dir: must not contain the working directory, because the agent cannot change files in it",
    );
  refuseOwnPrograms(io, client, flags["user"] === true);
  const command = svcCommand();
  const carrier = carrierWords(io);
  const hook = [...carrier.map(quoted), command].join(" ");
  const managed = flags["managed"] === true;
  const text = withText(
    client,
    (await readIfThere(file)) ?? "",
    managed
      ? `${cleanStart({ PATH: io.env["PATH"] })}${hook} hook ${client} --managed`
      : `${cleanStart({ ...io.env, HOME: homeOf(io) })}${hook} hook ${client} --settings ${quoted(settings)}`,
    { hold_s: await holdOf(settings, flags), give_prompts: await givesPrompts(settings, flags) },
  );
  if (flags["print"] === true) {
    io.err(`for ${escapeControls(file)}:`);
    return io.out(text.trimEnd());
  }
  if (managed) return connectMachine(io, client, file, text);
  const where = await writeService(context, { client, file, folder, settings, command, flags });
  await writeHook(io, client, { file, text, flags });
  if (carrier.length === 0)
    io.out("slow: without perl and nc every event starts Node; install one and connect again");
  sayNext(io, client, where, flags);
}

/** The hook of every account on this machine. Each account connects its own settings. */
async function connectMachine(io: CommandIo, client: HookClient, file: string, text: string): Promise<void> {
  await writeClientFile(io, file, text, `svc connect ${client} --hooks --managed`, {});
  io.out(
    `every account needs its own settings: svc connect ${client} --hooks   (until then its calls are refused)`,
  );
}

/** Writes the hook, unless the machine's settings start it, and takes it out of the project's own settings. */
async function writeHook(
  io: CommandIo,
  client: HookClient,
  { file, text, flags }: { file: string; text: string; flags: Flags },
): Promise<void> {
  const shared = flags["project"] === true;
  if (!shared && isManaged(client)) io.out(`${managedHooksFile(client)} starts the hook already`);
  else await writeClientFile(io, file, text, `svc connect ${client} --hooks`, { ...flags, user: false });
  if (shared && isTracked(file))
    io.err(
      `warning: git tracks ${escapeControls(file)}, so a checkout can switch the hook off; connect without --project`,
    );
  if (shared || flags["file"] !== undefined) return;
  for (const project of await hookedProjectFiles(io, client)) await takeHookOut(io, client, project);
}

const DEFAULT_HOLD_S = 50;
/** Clients give up on a hook that takes longer. */
const MAX_HOLD_S = 3_600;

/** Seconds for which a call that waits for a person is held: the option's, else the kept ones. */
async function holdOf(settings: string, { hold }: Flags): Promise<number> {
  const { hold_s } = await keptSettings(settings);
  if (hold === undefined) return typeof hold_s === "number" ? hold_s : DEFAULT_HOLD_S;
  const seconds = hold === "0" ? 0 : Math.ceil(parseDuration(hold as string, "--hold") / 1_000);
  if (seconds > MAX_HOLD_S) throw invalidError("--hold: at most 1h");
  return seconds;
}

/** Whether runs get what the user writes: with the option, and as kept. */
const givesPrompts = async (settings: string, { givePrompts }: Flags): Promise<boolean> =>
  givePrompts === true || (await keptSettings(settings)).give_prompts === true;

interface ServiceFiles {
  client: HookClient;
  file: string;
  folder: string;
  settings: string;
  command: string;
  flags: Flags;
}

/** Writes the files of the service and the hook's settings. Returns the option that names the service. */
async function writeService(context: CommandContext, files: ServiceFiles): Promise<string> {
  const { io } = context;
  const { client, file, folder, settings, command, flags } = files;
  const kept = await keptSettings(settings);
  // A directory without a configuration belongs to a service on another machine.
  const config = join(folder, CONFIG);
  const elsewhere = existsSync(config) ? undefined : kept.server;
  const url = (flags["url"] as string | undefined) ?? elsewhere;
  const server = existsSync(config) ? listeningAt(context, config) : HERE;
  await writePack(context, { folder, client, command, url });
  if (url === undefined && flags["givePrompts"] === true) await letGive(io, folder, client);
  const workspaces = registeredWith(io, kept.workspaces, flags);
  const protect = protectedWith(kept.protect, file, join(homeOf(io), hooksFile(client)), flags);
  await writeSettings(io, settings, {
    server,
    ...kept,
    ...chosen(io, { ...flags, url }),
    workspaces,
    protect,
    hold_s: await holdOf(settings, flags),
    ...((await givesPrompts(settings, flags)) ? { give_prompts: true } : {}),
    hooks_file: file,
  });
  io.out(
    workspaces === "all"
      ? "registered all workspaces"
      : `registered ${escapeControls(workspaceOf(io.cwd))}, and the linked work trees of its repository`,
  );
  return url === undefined ? `--config ${escapeControls(config)}` : `--server ${escapeControls(url)}`;
}

function registeredWith(io: CommandIo, kept: unknown, flags: Flags): RegisteredWorkspaces {
  if (flags["user"] === true || kept === "all") return "all";
  const before = Array.isArray(kept) ? (kept as string[]) : [];
  return [...new Set([...before, workspaceOf(io.cwd)])];
}

/** The hook protects the usual settings file by its name. Another place is listed. */
function protectedWith(kept: unknown, file: string, usual: string, flags: Flags): unknown[] {
  const before = Array.isArray(kept) ? kept : [];
  if (file === usual || flags["project"] === true || before.includes(file)) return before;
  return [...before, file];
}

interface Undone {
  file: string;
  settings: string;
  flags: Flags;
}

/** Removes the registration, and the hook with the last one. */
async function disconnectHooks(
  io: CommandIo,
  client: HookClient,
  { file, settings, flags }: Undone,
): Promise<void> {
  refuseAgents(io.env);
  if (flags["managed"] === true) {
    if (await takeHookOut(io, client, file)) return;
    throw notFoundError(`nothing to undo: ${escapeControls(file)} does not start the hook`);
  }
  const kept = await keptSettings(settings);
  const left = leftWorkspaces(io, kept.workspaces, flags);
  if (left !== undefined) {
    await replaceSettings(settings, { ...kept, workspaces: left });
    io.out(
      flags["user"] === true
        ? "no workspace is registered now"
        : `${escapeControls(workspaceOf(io.cwd))} is not registered now`,
    );
  }
  const files = await hookedProjectFiles(io, client);
  const others = left ?? (Array.isArray(kept.workspaces) ? kept.workspaces : []);
  // The other workspaces still need the hook in the user's settings.
  if (others.length === 0 || file !== userHooksFile(client, io.env, homeOf(io))) files.push(file);
  let taken = false;
  for (const one of files) taken = (await takeHookOut(io, client, one)) || taken;
  if (!taken && left === undefined)
    throw notFoundError(
      `nothing to undo: ${escapeControls(workspaceOf(io.cwd))} is not registered, and ${escapeControls(file)} does not start the hook`,
    );
}

/** Registrations without the current workspace. Undefined if it is not registered. */
function leftWorkspaces(io: CommandIo, kept: unknown, flags: Flags): string[] | undefined {
  if (flags["user"] === true) return kept === undefined ? undefined : [];
  if (kept === "all") throw invalidError("all workspaces are registered: undo that with --user --undo");
  const current = workspaceOf(io.cwd);
  if (!Array.isArray(kept) || !kept.includes(current)) return undefined;
  return kept.filter((one) => one !== current);
}

function sayNext(io: CommandIo, client: HookClient, where: string, flags: Flags): void {
  io.out("");
  io.out("Next:");
  if (where.startsWith("--config"))
    io.out(`  1. svc server ${where}   (while it is not running, every call is blocked)`);
  else io.out("  1. load the manifests and the policy that were written into the service");
  io.out(`  2. ${HOOK_INSTALLS[client].next}`);
  io.out(
    flags["observe"] === true
      ? `  3. svc runs ${where}, then svc show <run> ${where}   to see what would have been blocked`
      : `  3. svc approvals list ${where}   to see the requests that wait for you`,
  );
}

const svcCommand = (): string => [process.execPath, realpathSync(process.argv[1]!)].map(quoted).join(" ");

function withText(client: HookClient, text: string, command: string, choice: HookChoice): string {
  try {
    return withHooks(client, text, command, choice);
  } catch (error) {
    throw invalidError(
      `the client's settings cannot be read (${(error as Error).message}); fix them, or use --file`,
    );
  }
}

/** Environment variables whose values at connect time the hook keeps. */
const KEPT_VARIABLES = ["HOME", "PATH", "NODE_EXTRA_CA_CERTS"] as const;

/**
 * Returns the start of the hook's command line, which clears the client's environment. A project can set variables such
 * as `NODE_OPTIONS`, proxies or `SVC_*`, and Node applies them before the hook's code runs. With `exec` the hook has the
 * client as its parent, and notices its end. Empty on Windows, which has no such command.
 */
function cleanStart(kept: CommandIo["env"]): string {
  if (process.platform === "win32") return "";
  const pairs = KEPT_VARIABLES.flatMap((name) => (kept[name] ? [quoted(`${name}=${kept[name]}`)] : []));
  return `exec /usr/bin/env -i ${pairs.join(" ")} `;
}

const quoted = (word: string): string => `"${word.replace(/["\\$`]/g, "\\$&")}"`;

interface Pack {
  folder: string;
  client: HookClient;
  command: string;
  /** URL of a service on another machine, or undefined for one on this machine. */
  url: string | undefined;
}

async function writePack({ io }: CommandContext, { folder, client, command, url }: Pack) {
  if (url !== undefined && !/^https?:\/\/[^/]/.test(url)) throw invalidError("--url: must be an http(s) URL");
  await mkdir(join(folder, "manifests"), { recursive: true, mode: 0o700 });
  const write = async (name: string, make: (path: string) => Promise<void>) => {
    const path = join(folder, name);
    if (existsSync(path)) return io.out(`kept ${escapeControls(path)}`);
    await make(path);
    io.out(`wrote ${escapeControls(path)}`);
  };
  const own = (text: string) => (path: string) => writeFile(path, text, { mode: 0o600, flag: "wx" });
  await write("manifests/coding-agents.yaml", (path) => copyFile(join(PACK, "manifests.yaml"), path));
  await write("policy.yaml", (path) => copyFile(join(PACK, "policy.yaml"), path));
  if (url === undefined) {
    await write(CONFIG, own(configText(command, dirOption(folder, io.env))));
    await write(`${client}.key`, async (path) => {
      const keys = new KeyManager(join(folder, "keys.json"), { env: io.clock, create_file: true });
      const fields = { roles: ["agent" as const], max_permissions: ["code.*"], allow_observe: true };
      await own(`${(await keys.create(client, fields)).key}\n`)(path);
    });
  }
}

/** Allows the client's key to give its runs what the user writes. */
async function letGive(io: CommandIo, folder: string, client: HookClient): Promise<void> {
  const manager = new KeyManager(join(folder, "keys.json"), { env: io.clock });
  const keys = await manager.list();
  const at = keys.findIndex(({ name }) => name === client);
  if (at < 0) throw notFoundError(`${escapeControls(join(folder, "keys.json"))}: has no key ${client}`);
  await manager.patch(at, { may_give: true });
}

interface KeptSettings {
  server?: string;
  key_file?: string;
  /** Additional paths that the user protects from all changes. */
  protect?: unknown;
  workspaces?: unknown;
  hold_s?: unknown;
  give_prompts?: unknown;
  /** The client's settings file with the hook. */
  hooks_file?: string;
}

async function keptSettings(path: string): Promise<KeptSettings> {
  const text = (await readIfThere(path)) ?? "{}";
  try {
    return { ...(JSON.parse(text) as KeptSettings) };
  } catch {
    throw invalidError(
      `${escapeControls(path)}: is not JSON; fix it, or delete it with its list of protected paths`,
    );
  }
}

/** Returns the URL of the configured service for a client on the same machine. */
function listeningAt(context: CommandContext, config: string): string {
  const { host, port } = context.settings({ config }).listen;
  const near = /^(?:0\.0\.0\.0|::)?$/.test(host) ? "127.0.0.1" : host.includes(":") ? `[${host}]` : host;
  return `http://${near}:${port}`;
}

/** Returns the settings from the options. The default is a service on this machine. */
function chosen({ cwd }: CommandContext["io"], { url, keyFile, observe, approvers }: Flags) {
  return {
    ...(url === undefined ? {} : { server: url as string }),
    ...(approvers === undefined ? {} : { approvers: resolve(cwd, approvers as string) }),
    ...(keyFile === undefined ? {} : { key_file: resolve(cwd, keyFile as string) }),
    mode: observe === true ? "observe" : "enforce",
  };
}

type NewSettings = KeptSettings & { server: string; mode: string };

async function writeSettings(io: CommandContext["io"], path: string, given: NewSettings) {
  const settings = { key_file: basename(path).replace(/json$/, "key"), ...given };
  await replaceSettings(path, settings);
  io.out(`wrote ${escapeControls(path)}: mode ${settings.mode}, service ${escapeControls(settings.server)}`);
}

/** The restore looks for the recorded contents in the default directory without this option. */
const dirOption = (folder: string, env: CommandContext["io"]["env"]): string =>
  folder === hooksFolder(env) ? "" : ` --dir ${quoted(folder)}`;

/** Whole or not at all: a hook under way reads the file. */
async function replaceSettings(path: string, settings: object): Promise<void> {
  const fresh = `${path}.${process.pid}.new`;
  await writeFile(fresh, `${JSON.stringify(settings, null, 2)}\n`, { mode: 0o600 });
  await rename(fresh, path);
}

/** JSON strings are valid YAML. */
function configText(command: string, dir: string): string {
  const { port } = new URL(HERE);
  return [
    "# The service for coding agents on this machine. Start it with: svc server --config <this file>",
    "manifests: manifests",
    "policy: policy.yaml",
    "keys: keys.json",
    "data: data",
    `listen: {host: 127.0.0.1, port: ${port}}`,
    "rollback:",
    "  # The hook itself restores and reads files, on the machine where they are.",
    `  compensator_cmd: ${JSON.stringify(`${command} hook restore${dir}`)}`,
    `  reader_cmd: ${JSON.stringify(`${command} hook read${dir}`)}`,
    "",
  ].join("\n");
}
