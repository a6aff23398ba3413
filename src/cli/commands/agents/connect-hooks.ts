/**
 * `svc connect <client> --hooks`: adds the hook to a coding agent's settings and writes the files that its service
 * needs: manifests, policy, keys and configuration. Existing files stay as they are, and so do existing hook settings
 * that no option changes.
 */
import { existsSync, realpathSync } from "node:fs";
import { copyFile, mkdir, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { basename, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { KeyManager } from "../../../auth/key-manager.ts";
import { packageFile } from "../../../child-process/package-files.ts";
import { readIfThere } from "../../../gateway/connect/backup.ts";
import { HOOK_CLIENTS, type HookClient } from "../../../hook/clients/clients.ts";
import { HOOK_INSTALLS, hooksFile, withHooks } from "../../../hook/clients/install.ts";
import { hooksFolder } from "../../../hook/settings.ts";
import { invalidError } from "../../../kernel/errors.ts";
import type { CommandContext } from "../../context.ts";
import { escapeControls } from "../../io.ts";
import { restoreClientFile, writeClientFile } from "./client-file.ts";

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
  if (flags["undo"] === true) return restoreClientFile(io, file);
  const folder = resolve(io.cwd, (flags["dir"] as string | undefined) ?? hooksFolder(io.env));
  if (`${io.cwd}/`.startsWith(`${folder}/`))
    throw invalidError(
      "--dir: must not contain the working directory, because the agent cannot change files in it",
    );
  const settings = join(folder, `${client}.json`);
  const script = realpathSync(process.argv[1]!);
  const command = [process.execPath, script].map(quoted).join(" ");
  const text = withText(
    client,
    (await readIfThere(file)) ?? "",
    `${cleanStart(io.env)}${command} hook ${client} --settings ${quoted(settings)}`,
  );
  if (flags["print"] === true) {
    io.err(`for ${escapeControls(file)}:`);
    return io.out(text.trimEnd());
  }
  const kept = await keptSettings(settings);
  // A directory without a configuration belongs to a service on another machine.
  const config = join(folder, CONFIG);
  const elsewhere = existsSync(config) ? undefined : kept.server;
  const url = (flags["url"] as string | undefined) ?? elsewhere;
  const server = existsSync(config) ? listeningAt(context, config) : HERE;
  await writePack(context, { folder, client, command, url });
  await writeSettings(io, settings, { server, ...kept, ...chosen(io, { ...flags, url }) });
  await writeClientFile(io, file, text, `svc connect ${client} --hooks`, flags);
  io.out("");
  io.out("Next:");
  const where = url === undefined ? `--config ${escapeControls(config)}` : `--server ${escapeControls(url)}`;
  if (url === undefined)
    io.out(`  1. svc server ${where}   (while it is not running, every call is blocked)`);
  else io.out(`  1. load the manifests and the policy in ${escapeControls(folder)} into the service`);
  io.out(`  2. ${HOOK_INSTALLS[client].next}`);
  io.out(
    flags["observe"] === true
      ? `  3. svc runs ${where}, then svc show <run> ${where}   to see what would have been blocked`
      : `  3. svc approvals list ${where}   to see the requests that wait for you`,
  );
}

function settingsFile(io: CommandContext["io"], client: HookClient, flags: Flags): string {
  const given = flags["file"] as string | undefined;
  if (given !== undefined) return resolve(io.cwd, given);
  return join(flags["user"] === true ? (io.env["HOME"] ?? homedir()) : io.cwd, hooksFile(client));
}

function withText(client: HookClient, text: string, command: string): string {
  try {
    return withHooks(client, text, command);
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
 * as `NODE_OPTIONS`, proxies or `SVC_*`, and Node applies them before the hook's code runs. Empty on Windows, which has
 * no such command.
 */
function cleanStart(env: CommandContext["io"]["env"]): string {
  if (process.platform === "win32") return "";
  const kept: CommandContext["io"]["env"] = { ...env, HOME: env["HOME"] || homedir() };
  const pairs = KEPT_VARIABLES.flatMap((name) => (kept[name] ? [quoted(`${name}=${kept[name]}`)] : []));
  return `/usr/bin/env -i ${pairs.join(" ")} `;
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

interface KeptSettings {
  server?: string;
  key_file?: string;
  /** Additional paths that the user protects from all changes. */
  protect?: unknown;
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
function chosen({ cwd }: CommandContext["io"], { url, keyFile, observe }: Flags) {
  return {
    ...(url === undefined ? {} : { server: url as string }),
    ...(keyFile === undefined ? {} : { key_file: resolve(cwd, keyFile as string) }),
    mode: observe === true ? "observe" : "enforce",
  };
}

type NewSettings = KeptSettings & { server: string; mode: string };

async function writeSettings(io: CommandContext["io"], path: string, given: NewSettings) {
  const settings = { key_file: basename(path).replace(/json$/, "key"), protect: [], ...given };
  await writeFile(path, `${JSON.stringify(settings, null, 2)}\n`, { mode: 0o600 });
  io.out(`wrote ${escapeControls(path)}: mode ${settings.mode}, service ${escapeControls(settings.server)}`);
}

/** The restore looks for the recorded contents in the default directory without this option. */
const dirOption = (folder: string, env: CommandContext["io"]["env"]): string =>
  folder === hooksFolder(env) ? "" : ` --dir ${quoted(folder)}`;

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
