/** `svc connect <client>`: adds the gateway to an MCP client's configuration, or undoes that. */
import { existsSync, realpathSync } from "node:fs";
import { homedir } from "node:os";
import { resolve } from "node:path";
import { hasListenSetting, type LoadedSettings } from "../../../config/settings.ts";
import { readIfThere } from "../../../gateway/connect/backup.ts";
import { type ConfigEdit, entrySnippet, withServer } from "../../../gateway/connect/config-edit.ts";
import {
  CLIENT_KINDS,
  type ClientName,
  type ConfigLocations,
  type GatewayTarget,
  KEY_VARIABLE,
  MCP_CLIENT_NAMES,
} from "../../../gateway/connect/mcp-clients.ts";
import { HOOK_CLIENTS } from "../../../hook/clients/clients.ts";
import { invalidError } from "../../../kernel/errors.ts";
import type { CommandContext, RegisterCommand } from "../../context.ts";
import { escapeControls } from "../../io.ts";
import { restoreClientFile, writeClientFile } from "./client-file.ts";
import { connectAll } from "./connect-all.ts";
import { connectHooks } from "./connect-hooks.ts";

export const registerConnect: RegisterCommand = (program, context) => {
  program
    .command("connect")
    .argument("[client]", `${MCP_CLIENT_NAMES.join(", ")}`)
    .description("Connect an MCP client or a coding agent")
    .option(
      "--config <file>",
      "gateway config file (default: svc.config.yaml); the client then starts the gateway",
    )
    .option("--url <url>", "URL of a running gateway, such as http://127.0.0.1:8787/mcp")
    .option("--name <name>", "name of the entry in the client's configuration", "svc")
    .option(
      "--user",
      "edit the client's user configuration instead of the project's; with --hooks: govern all workspaces",
    )
    .option("--managed", "with --hooks: write the machine's settings of the client, as root")
    .option("--project", "with --hooks: write the project's settings of the client")
    .option("--file <path>", "edit this configuration file instead")
    .option("--print", "print the entry without writing it")
    .option("--undo", "undo the change")
    .option("--hooks", `govern a coding agent's own tools through its hooks: ${HOOK_CLIENTS.join(", ")}`)
    .option("--all", "connect every coding agent and MCP server found, after you confirm")
    .option("--yes", "with --all: do not ask")
    .option("--observe", "with --hooks: only record calls, never block them")
    .option(
      "--hold <duration>",
      "with --hooks: how long a call waits for a person before it is refused; 0: not at all (default: 50s)",
    )
    .option(
      "--approvers <file>",
      "with --hooks: approvers file; the hook verifies signed approvals of the tools that it names",
    )
    .option("--give-prompts", "with --hooks: send your prompts to each run, so that flows trust their values")
    .option("--dir <dir>", "with --hooks: directory of the service's files (default: ~/.config/svc/hooks)")
    .option("--key-file <file>", "with --hooks and --url: the agent's key for that service")
    .action((client: string | undefined, own: Record<string, unknown>) => {
      // Global options with the same names may come before the command. They count too.
      const flags = { ...program.opts(), ...own };
      if (flags["all"] === true) {
        const other = ["undo", "print", "managed", "project", "file", "config"].find((name) => flags[name]);
        if (client !== undefined || other !== undefined)
          throw invalidError(`--all: leave out ${client ?? `--${other}`}`);
        return connectAll(context, flags);
      }
      if (client === undefined) throw invalidError("name a client, or use --all");
      if (flags["server"] !== undefined) throw invalidError("--server: use --url <url> instead");
      return flags["hooks"] === true ? connectHooks(context, client, flags) : connect(context, client, flags);
    });
};

async function connect(
  context: CommandContext,
  client: string,
  flags: Record<string, unknown>,
): Promise<void> {
  const { io } = context;
  if (!(MCP_CLIENT_NAMES as readonly string[]).includes(client)) {
    throw invalidError(`unknown client ${escapeControls(client)}; known are ${MCP_CLIENT_NAMES.join(", ")}`);
  }
  const kind = CLIENT_KINDS[client as ClientName];
  const path = fileOf(io, client as ClientName, flags);
  if (flags["undo"] === true) return restoreClientFile(io, path);
  const named = (flags["config"] as string | undefined) ?? io.env["SVC_CONFIG"];
  const config = resolve(io.cwd, named || "svc.config.yaml");
  const target = targetOf(context, flags, config);
  const entry = kind.entry(target);
  if (entry === null)
    throw invalidError(`${kind.title} starts its servers itself: omit --url and pass --config`);
  const name = flags["name"] as string;
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(name))
    throw invalidError('--name: letters, digits, "-" and "_" (at most 64)');
  const edit: ConfigEdit = { format: kind.format, member: kind.member, name, entry };
  if (flags["print"] === true) {
    io.err(`for ${escapeControls(path)}:`);
    return io.out(entrySnippet(edit));
  }
  const text = withServer((await readIfThere(path)) ?? "", edit);
  await writeClientFile(io, path, text, `svc connect ${client}`, flags);
  if ("command" in target && !existsSync(config))
    io.out(`${escapeControls(config)} does not exist yet; svc init --from <tool server> creates it`);
  if ("url" in target) io.out(`set the environment variable ${KEY_VARIABLE} to the agent's key`);
  if (kind.own_tools !== null)
    io.out(
      `${kind.title}'s own tools (${kind.own_tools}) do not go through the gateway: ${governed(client)}`,
    );
  io.out(`then: ${kind.next}`);
}

function governed(client: string): string {
  return (HOOK_CLIENTS as readonly string[]).includes(client)
    ? `svc connect ${client} --hooks governs them`
    : "svc cannot govern them";
}

function fileOf(io: CommandContext["io"], client: ClientName, flags: Record<string, unknown>): string {
  const given = flags["file"] as string | undefined;
  if (given !== undefined) return resolve(io.cwd, given);
  const kind = CLIENT_KINDS[client];
  const { env, cwd } = io;
  const places: ConfigLocations = {
    home: env["HOME"] ?? homedir(),
    cwd,
    platform: process.platform,
    appdata: env["APPDATA"],
  };
  return kind.project === null || flags["user"] === true ? kind.user(places) : resolve(cwd, kind.project);
}

function targetOf(context: CommandContext, flags: Record<string, unknown>, config: string): GatewayTarget {
  const url = flags["url"] as string | undefined;
  if (url === undefined) {
    // Absolute, because the client can start it from any directory.
    const script = realpathSync(process.argv[1]!);
    const settings = readable(context, config);
    refuseListening(settings);
    const args = [script, "gateway", "--config", config, ...forClients(settings)];
    return { command: process.execPath, args };
  }
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw invalidError("--url: must be an http(s) URL");
  return { url };
}

/** Options that a client and its model need, unless the config file sets them. */
function forClients(settings: LoadedSettings | null): string[] {
  const said = (key: string) => settings?.meta.origins.get(key)?.from === "file";
  return [
    ...(said("tool_names") ? [] : ["--tool-names", "underscores"]),
    ...(said("ask_reason") ? [] : ["--ask-reason"]),
  ];
}

/** Throws if the gateway is configured to listen: clients must then connect by URL instead of starting it. */
function refuseListening(settings: LoadedSettings | null): void {
  if (settings === null || !hasListenSetting(settings)) return;
  const { host, port } = settings.listen;
  throw invalidError(
    `this gateway listens on HTTP: start it and connect with --url http://${host}:${port}/mcp`,
  );
}

/** Returns null if the config does not load. It may name variables that only the client sets. */
function readable(context: CommandContext, config: string): LoadedSettings | null {
  try {
    return existsSync(config) ? context.settings({ config }) : null;
  } catch {
    return null;
  }
}
