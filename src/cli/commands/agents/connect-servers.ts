/**
 * The part of `svc connect --all` for MCP servers: puts each one that a client starts itself behind its own gateway.
 * The client's file keeps a backup. Leaves a server that cannot be moved, with the reason.
 */
import { join } from "node:path";
import { readIfThere } from "../../../gateway/connect/backup.ts";
import { withServer } from "../../../gateway/connect/config-edit.ts";
import { CLIENT_KINDS } from "../../../gateway/connect/mcp-clients.ts";
import { isJsonObject, type JsonObject } from "../../../kernel/json/json.ts";
import type { CommandContext } from "../../context.ts";
import { type CommandIo, escapeControls } from "../../io.ts";
import { writeClientFile } from "./client-file.ts";
import { homeOf, isTracked } from "./hook-places.ts";
import { draftGateway } from "./init.ts";
import { configuredServers, type McpServer } from "./mcp-inventory.ts";

/** A server with the command that starts it, or the reason why it is left. */
type FoundServer = McpServer & { folder: string } & (
    | { command: string; args: string[]; env: Record<string, string> }
    | { left: string }
  );

/** Servers that are not behind a gateway. `folder`: the directory of their gateways. */
export function findServers(io: CommandIo, folder: string): FoundServer[] {
  return configuredServers(io)
    .filter(({ isGateway }) => !isGateway)
    .map((server) => ({
      ...server,
      folder: join(folder, `${server.client}-${server.name}`),
      ...startOf(server),
    }));
}

const KNOWN = new Set(["type", "command", "args", "env"]);
const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;

function startOf({ name, file, entry, isProject }: McpServer) {
  if (isProject && isTracked(file)) return { left: "git tracks its file, which others use" };
  if (!NAME.test(name) || name === "svc")
    return { left: "its name has characters that a gateway does not accept" };
  if (!isJsonObject(entry)) return { left: "svc does not change servers in this form" };
  const { command, args = [], env = {} } = entry;
  if (typeof command !== "string" || !areTexts(args)) return { left: "it is not started by a command" };
  if (!isJsonObject(env) || !areTexts(Object.values(env)))
    return { left: "its environment variables are not strings" };
  const other = Object.keys(entry).find((key) => !KNOWN.has(key));
  if (other !== undefined) return { left: `a gateway does not support its ${other}` };
  if (/\$\{/.test(JSON.stringify([command, args])))
    return { left: "its command uses variables of the client" };
  return { command, args, env: env as Record<string, string> };
}

const areTexts = (given: unknown): given is string[] =>
  Array.isArray(given) && given.every((one) => typeof one === "string");

export const describeServer = (server: FoundServer): string => {
  const { client, name, file, folder } = server;
  const of = `${client}: ${escapeControls(name)} of ${escapeControls(file)}`;
  return "left" in server
    ? `${of} is left: ${server.left}`
    : `${of} is started once to read its tools, and then behind a gateway in ${escapeControls(folder)}`;
};

/** Returns how many could not be connected. The client's file changes only after the gateway's files are there. */
export async function connectServers(
  context: CommandContext,
  servers: readonly FoundServer[],
): Promise<number> {
  const { io } = context;
  let failed = 0;
  for (const server of servers) {
    if ("left" in server) continue;
    try {
      await connectServer(context, server);
    } catch (error) {
      failed++;
      io.err(
        `${server.client}: ${escapeControls(server.name)} is left: ${escapeControls((error as Error).message)}`,
      );
    }
  }
  return failed;
}

async function connectServer(
  context: CommandContext,
  server: Exclude<FoundServer, { left: string }>,
): Promise<void> {
  const { io } = context;
  const { client, name, file, folder, command, args, env, isProject } = server;
  const kind = CLIENT_KINDS[client];
  const cwd = isProject ? io.cwd : homeOf(io);
  const config = await draftGateway(context, { name, command, args, env, cwd, folder });
  const start = { command: process.execPath, args: [process.argv[1]!, "gateway", "--config", config] };
  const entry: JsonObject = {
    ...(kind.entry(start) as JsonObject),
    ...(Object.keys(env).length > 0 ? { env } : {}),
  };
  const text = withServer((await readIfThere(file)) ?? "", {
    format: kind.format,
    member: kind.member,
    name,
    entry,
  });
  await writeClientFile(io, file, text, `svc connect ${client}`, {
    user: !isProject && kind.project !== null,
  });
}
