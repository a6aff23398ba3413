/**
 * `svc connect <client> --hooks`: puts the hook into a coding agent's settings, and beside it everything that a
 * service for it needs: manifests, policy, keys, configuration. Files that are there are kept as they are, and of the
 * hook's own settings what the options do not say anew.
 */
import { existsSync, realpathSync } from "node:fs";
import { copyFile, mkdir, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { basename, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { KeyManager } from "../../auth/manage.ts";
import { readIfThere } from "../../gateway/connect/backup.ts";
import { HOOK_CLIENTS, type HookClient } from "../../hook/clients.ts";
import { hooksFile, INSTALLED, withHooks } from "../../hook/install.ts";
import { hooksFolder } from "../../hook/settings.ts";
import { invalid } from "../../kernel/errors.ts";
import { packageFile } from "../../process/package.ts";
import type { Context } from "../context.ts";
import { printable } from "../io.ts";
import { undoClientFile, writeClientFile } from "./client-file.ts";

const PACK = fileURLToPath(packageFile("packs/coding-agents"));
const HERE = "http://127.0.0.1:8787";
const CONFIG = "svc.config.yaml";

type Flags = Record<string, unknown>;

export async function connectHooks(context: Context, named: string, flags: Flags): Promise<void> {
  const { io } = context;
  if (!(HOOK_CLIENTS as readonly string[]).includes(named))
    throw invalid(`${printable(named)} has no hooks that svc knows; known are ${HOOK_CLIENTS.join(", ")}`);
  const client = named as HookClient;
  const file = settingsFile(io, client, flags);
  if (flags["undo"] === true) return undoClientFile(io, file);
  const folder = resolve(io.cwd, (flags["dir"] as string | undefined) ?? hooksFolder(io.env));
  if (`${io.cwd}/`.startsWith(`${folder}/`))
    throw invalid("--dir: a folder of its own: the agent may touch nothing in it, and it works in this one");
  const settings = join(folder, `${client}.json`);
  const script = realpathSync(process.argv[1]!);
  const command = [process.execPath, script].map(quoted).join(" ");
  const text = withText(
    client,
    (await readIfThere(file)) ?? "",
    `${cleanStart(io.env)}${command} hook ${client} --settings ${quoted(settings)}`,
  );
  if (flags["print"] === true) {
    io.err(`for ${printable(file)}:`);
    return io.out(text.trimEnd());
  }
  const kept = await keptSettings(settings);
  // A folder without a configuration is that of a service elsewhere.
  const config = join(folder, CONFIG);
  const elsewhere = existsSync(config) ? undefined : kept.server;
  const url = (flags["url"] as string | undefined) ?? elsewhere;
  const server = existsSync(config) ? listeningAt(context, config) : HERE;
  await writePack(context, { folder, client, command, url });
  await writeSettings(io, settings, { server, ...kept, ...chosen(io, { ...flags, url }) });
  await writeClientFile(io, file, text, `svc connect ${client} --hooks`, flags);
  io.out("");
  io.out("Next:");
  const where = url === undefined ? `--config ${printable(config)}` : `--server ${printable(url)}`;
  if (url === undefined) io.out(`  1. svc server ${where}   (while it is away every call is refused)`);
  else io.out(`  1. give the service the manifests and the policy in ${printable(folder)}`);
  io.out(`  2. ${INSTALLED[client].next}`);
  io.out(
    flags["observe"] === true
      ? `  3. svc runs ${where}, then svc show <run> ${where}   tells what would have been blocked`
      : `  3. svc approvals list ${where}   shows what waits for you`,
  );
}

function settingsFile(io: Context["io"], client: HookClient, flags: Flags): string {
  const given = flags["file"] as string | undefined;
  if (given !== undefined) return resolve(io.cwd, given);
  return join(flags["user"] === true ? (io.env["HOME"] ?? homedir()) : io.cwd, hooksFile(client));
}

function withText(client: HookClient, text: string, command: string): string {
  try {
    return withHooks(client, text, command);
  } catch (error) {
    throw invalid(
      `the client's settings cannot be read (${(error as Error).message}); use --file, or correct them`,
    );
  }
}

/** Variables of the day of connecting that the hook keeps. */
const KEPT_VARIABLES = ["HOME", "PATH", "NODE_EXTRA_CA_CERTS"] as const;

/**
 * The start of the hook's command line: no variable of the client's reaches it. A project may set some
 * (`NODE_OPTIONS`, proxies, `SVC_*`), and Node obeys them before the hook's code runs. Windows has no such command.
 */
function cleanStart(env: Context["io"]["env"]): string {
  if (process.platform === "win32") return "";
  const kept: Context["io"]["env"] = { ...env, HOME: env["HOME"] || homedir() };
  const pairs = KEPT_VARIABLES.flatMap((name) => (kept[name] ? [quoted(`${name}=${kept[name]}`)] : []));
  return `/usr/bin/env -i ${pairs.join(" ")} `;
}

const quoted = (word: string): string => `"${word.replace(/["\\$`]/g, "\\$&")}"`;

interface Pack {
  folder: string;
  client: HookClient;
  command: string;
  /** Of a service that runs elsewhere. */
  url: string | undefined;
}

async function writePack({ io }: Context, { folder, client, command, url }: Pack) {
  if (url !== undefined && !/^https?:\/\/[^/]/.test(url)) throw invalid("--url: is not an http(s) address");
  await mkdir(join(folder, "manifests"), { recursive: true, mode: 0o700 });
  const write = async (name: string, make: (path: string) => Promise<void>) => {
    const path = join(folder, name);
    if (existsSync(path)) return io.out(`kept ${printable(path)}`);
    await make(path);
    io.out(`wrote ${printable(path)}`);
  };
  const own = (text: string) => (path: string) => writeFile(path, text, { mode: 0o600, flag: "wx" });
  await write("manifests/coding-agents.yaml", (path) => copyFile(join(PACK, "manifests.yaml"), path));
  await write("policy.yaml", (path) => copyFile(join(PACK, "policy.yaml"), path));
  if (url === undefined) {
    await write(CONFIG, own(configText(command)));
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
  /** Further paths that nothing may touch; a person adds them. */
  protect?: unknown;
}

async function keptSettings(path: string): Promise<KeptSettings> {
  const text = (await readIfThere(path)) ?? "{}";
  try {
    return { ...(JSON.parse(text) as KeptSettings) };
  } catch {
    throw invalid(`${printable(path)}: is not JSON; correct it, or remove it and what it protects`);
  }
}

/** Where a configuration that is there listens, for a client on the same machine. */
function listeningAt(context: Context, config: string): string {
  const { host, port } = context.settings({ config }).listen;
  const near = /^(?:0\.0\.0\.0|::)?$/.test(host) ? "127.0.0.1" : host.includes(":") ? `[${host}]` : host;
  return `http://${near}:${port}`;
}

/** What the options say; without them, a service on this machine. */
function chosen({ cwd }: Context["io"], { url, keyFile, observe }: Flags) {
  return {
    ...(url === undefined ? {} : { server: url as string }),
    ...(keyFile === undefined ? {} : { key_file: resolve(cwd, keyFile as string) }),
    mode: observe === true ? "observe" : "enforce",
  };
}

type NewSettings = KeptSettings & { server: string; mode: string };

async function writeSettings(io: Context["io"], path: string, given: NewSettings) {
  const settings = { key_file: basename(path).replace(/json$/, "key"), protect: [], ...given };
  await writeFile(path, `${JSON.stringify(settings, null, 2)}\n`, { mode: 0o600 });
  io.out(`wrote ${printable(path)}: mode ${settings.mode}, service ${printable(settings.server)}`);
}

/** JSON's texts are YAML's too. */
function configText(command: string): string {
  const { port } = new URL(HERE);
  return [
    "# The service for coding agents on this machine. Start it with: svc server --config <this file>",
    "manifests: manifests",
    "policy: policy.yaml",
    "keys: keys.json",
    "data: data",
    `listen: {host: 127.0.0.1, port: ${port}}`,
    "rollback:",
    "  # Files are put back and looked at by the hook itself, on the machine where they are.",
    `  compensator_cmd: ${JSON.stringify(`${command} hook restore`)}`,
    `  reader_cmd: ${JSON.stringify(`${command} hook read`)}`,
    "",
  ].join("\n");
}
