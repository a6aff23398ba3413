/** `svc connect <client>`: points an MCP client at the gateway, with a way back. */
import { existsSync, realpathSync } from "node:fs";
import { homedir } from "node:os";
import { resolve } from "node:path";
import { listenGiven, type Settings } from "../../config/settings.ts";
import { readIfThere } from "../../gateway/connect/backup.ts";
import {
  CLIENT_KINDS,
  CLIENTS,
  type ClientName,
  KEY_VARIABLE,
  type Places,
  type Target,
} from "../../gateway/connect/clients.ts";
import { type Edit, snippet, withServer } from "../../gateway/connect/edit.ts";
import { HOOK_CLIENTS } from "../../hook/clients.ts";
import { invalid } from "../../kernel/errors.ts";
import type { Context, Register } from "../context.ts";
import { printable } from "../io.ts";
import { undoClientFile, writeClientFile } from "./client-file.ts";
import { connectHooks } from "./connect-hooks.ts";

export const registerConnect: Register = (program, context) => {
  program
    .command("connect <client>")
    .description(`point an MCP client at the gateway: ${CLIENTS.join(", ")}`)
    .option(
      "--config <file>",
      "the gateway's config file (default: svc.config.yaml here); the client then starts the gateway itself",
    )
    .option(
      "--url <address>",
      "the gateway's address, such as http://127.0.0.1:8787/mcp, instead of starting one",
    )
    .option("--name <name>", "how the client calls it", "svc")
    .option("--user", "the client's configuration for all projects, where it also has one per project")
    .option("--file <path>", "this configuration file instead of the usual one")
    .option("--print", "print the entry; write nothing")
    .option("--undo", "take the change back")
    .option("--hooks", `a coding agent's own tools instead, through its hooks: ${HOOK_CLIENTS.join(", ")}`)
    .option("--observe", "with --hooks: nothing is blocked, only recorded")
    .option("--dir <folder>", "with --hooks: where the service's files are (default: ~/.config/svc/hooks)")
    .option("--key-file <file>", "with --hooks and --url: the agent's key for that service")
    .action((client: string, own: Record<string, unknown>) => {
      // Options of these names that stand before the command are meant no less.
      const flags = { ...program.opts(), ...own };
      if (flags["server"] !== undefined)
        throw invalid("--server: say --url <address> for what is to be reached");
      return flags["hooks"] === true ? connectHooks(context, client, flags) : connect(context, client, flags);
    });
};

async function connect(context: Context, client: string, flags: Record<string, unknown>): Promise<void> {
  const { io } = context;
  if (!(CLIENTS as readonly string[]).includes(client)) {
    throw invalid(`unknown client ${printable(client)}; known are ${CLIENTS.join(", ")}`);
  }
  const kind = CLIENT_KINDS[client as ClientName];
  const path = fileOf(io, client as ClientName, flags);
  if (flags["undo"] === true) return undoClientFile(io, path);
  const named = (flags["config"] as string | undefined) ?? io.env["SVC_CONFIG"];
  const config = resolve(io.cwd, named || "svc.config.yaml");
  const target = targetOf(context, flags, config);
  const entry = kind.entry(target);
  if (entry === null)
    throw invalid(`${kind.title} starts its servers itself: leave out --url, and give --config`);
  const name = flags["name"] as string;
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(name)) throw invalid('--name: letters, digits, "-" and "_" (at most 64)');
  const edit: Edit = { format: kind.format, member: kind.member, name, entry };
  if (flags["print"] === true) {
    io.err(`for ${printable(path)}:`);
    return io.out(snippet(edit));
  }
  const text = withServer((await readIfThere(path)) ?? "", edit);
  await writeClientFile(io, path, text, `svc connect ${client}`, flags);
  if ("command" in target && !existsSync(config))
    io.out(`${printable(config)} is not there yet; svc init --from <tool server> writes one`);
  if ("url" in target) io.out(`put the agent's key into the environment variable ${KEY_VARIABLE}`);
  if (kind.own_tools !== null)
    io.out(
      `${kind.title}'s own tools (${kind.own_tools}) do not go through the gateway: ${governed(client)}`,
    );
  io.out(`then: ${kind.next}`);
}

function governed(client: string): string {
  return (HOOK_CLIENTS as readonly string[]).includes(client)
    ? `svc connect ${client} --hooks governs them`
    : "nothing here governs them";
}

function fileOf(io: Context["io"], client: ClientName, flags: Record<string, unknown>): string {
  const given = flags["file"] as string | undefined;
  if (given !== undefined) return resolve(io.cwd, given);
  const kind = CLIENT_KINDS[client];
  const { env, cwd } = io;
  const places: Places = {
    home: env["HOME"] ?? homedir(),
    cwd,
    platform: process.platform,
    appdata: env["APPDATA"],
  };
  return kind.project === null || flags["user"] === true ? kind.user(places) : resolve(cwd, kind.project);
}

function targetOf(context: Context, flags: Record<string, unknown>, config: string): Target {
  const url = flags["url"] as string | undefined;
  if (url === undefined) {
    // Absolute, because a client starts it from wherever it happens to be.
    const script = realpathSync(process.argv[1]!);
    const settings = readable(context, config);
    refuseListening(settings);
    const args = [script, "gateway", "--config", config, ...forClients(settings)];
    return { command: process.execPath, args };
  }
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw invalid("--url: is not an http(s) address");
  return { url };
}

/** What a client and its model need, where the config does not say otherwise. */
function forClients(settings: Settings | null): string[] {
  const said = (key: string) => settings?.meta.origins.get(key)?.from === "file";
  return [
    ...(said("tool_names") ? [] : ["--tool-names", "underscores"]),
    ...(said("ask_reason") ? [] : ["--ask-reason"]),
  ];
}

/** A gateway that listens has nothing to say on its stdin; the client has to call it instead. */
function refuseListening(settings: Settings | null): void {
  if (settings === null || !listenGiven(settings)) return;
  const { host, port } = settings.listen;
  throw invalid(`this gateway listens: start it, and connect with --url http://${host}:${port}/mcp`);
}

/** Null where it does not load: it may name variables that only the client will have. */
function readable(context: Context, config: string): Settings | null {
  try {
    return existsSync(config) ? context.settings({ config }) : null;
  } catch {
    return null;
  }
}
