/** MCP servers in the configurations of clients on this machine: behind the gateway, or not governed. */
import { homedir } from "node:os";
import { join } from "node:path";
import {
  CLIENT_KINDS,
  type ClientName,
  type ConfigLocations,
  KEY_VARIABLE,
  MCP_CLIENT_NAMES,
} from "../../../gateway/connect/mcp-clients.ts";
import type { AgentEntry } from "../../../hook/inventory.ts";
import { readTextOrNull } from "../../../hook/workspace/read-text.ts";
import type { CommandIo } from "../../io.ts";

export interface McpServer {
  client: ClientName;
  name: string;
  file: string;
  /** Whether the file belongs to the working directory and not to the user. */
  isProject: boolean;
  /** Undefined in a format that is not read. */
  entry: unknown;
  isGateway: boolean;
}

export const listMcpServers = (io: CommandIo): AgentEntry[] =>
  configuredServers(io).map(({ client, name, file, isGateway }) => ({
    client: `${client} MCP server ${name}`,
    version: null,
    workspace: file,
    governed: isGateway ? ("yes" as const) : ("no" as const),
    missing: isGateway ? [] : ["it is not behind the gateway: svc connect --all"],
    last_seen_ms: null,
  }));

/** Every server in the configurations of the clients. */
export function configuredServers({ env, cwd }: CommandIo): McpServer[] {
  const places: ConfigLocations = {
    home: env["HOME"] || homedir(),
    cwd,
    platform: process.platform,
    appdata: env["APPDATA"],
  };
  return MCP_CLIENT_NAMES.flatMap((client) => {
    const { project, user, format, member } = CLIENT_KINDS[client];
    const files = [user(places), ...(project === null ? [] : [join(cwd, project)])];
    return [...new Set(files)].flatMap((file, at) =>
      serversIn(file, format, member).map((server) => ({ client, file, isProject: at > 0, ...server })),
    );
  });
}

type FoundEntry = Pick<McpServer, "name" | "entry" | "isGateway">;

function serversIn(file: string, format: "json" | "toml", member: string): FoundEntry[] {
  const text = readTextOrNull(file);
  if (text === null) return [];
  if (format === "toml")
    return [...text.matchAll(/^\[mcp_servers\.("?)([\w.-]+)\1\]\s*$([^[]*)/gm)].map(([, , name, body]) => ({
      name: name!,
      entry: undefined,
      isGateway: isGatewayEntry(body!),
    }));
  try {
    const servers = (JSON.parse(text) as Record<string, unknown>)[member];
    if (typeof servers !== "object" || servers === null) return [];
    return Object.entries(servers).map(([name, entry]) => ({
      name,
      entry,
      isGateway: isGatewayEntry(JSON.stringify(entry)),
    }));
  } catch {
    return [];
  }
}

/** `svc connect` starts the gateway by this file, or has the client send the agent's key to a running one. */
const isGatewayEntry = (text: string): boolean =>
  (/svc(?:\.js)?"/.test(text) && /"gateway"/.test(text)) || new RegExp(`\\b${KEY_VARIABLE}\\b`).test(text);
