/** MCP servers in the configurations of clients on this machine: behind the gateway, or not governed. */
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import {
  CLIENT_KINDS,
  type ConfigLocations,
  MCP_CLIENT_NAMES,
} from "../../../gateway/connect/mcp-clients.ts";
import type { AgentEntry } from "../../../hook/inventory.ts";
import type { CommandIo } from "../../io.ts";

export function listMcpServers({ env, cwd }: CommandIo): AgentEntry[] {
  const places: ConfigLocations = {
    home: env["HOME"] || homedir(),
    cwd,
    platform: process.platform,
    appdata: env["APPDATA"],
  };
  return MCP_CLIENT_NAMES.flatMap((client) => {
    const { project, user, format, member } = CLIENT_KINDS[client];
    const files = [user(places), ...(project === null ? [] : [join(cwd, project)])];
    return [...new Set(files)].flatMap((file) =>
      serversIn(file, format, member).map(([name, isGateway]) => ({
        client: `${client} MCP server ${name}`,
        version: null,
        workspace: file,
        governed: isGateway ? ("yes" as const) : ("no" as const),
        missing: isGateway ? [] : ["it is not behind the gateway: svc init --from"],
        last_seen_ms: null,
      })),
    );
  });
}

/** Names of the servers, and whether each is the gateway. */
function serversIn(file: string, format: "json" | "toml", member: string): [string, boolean][] {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch {
    return [];
  }
  if (format === "toml")
    return [...text.matchAll(/^\[mcp_servers\.("?)([\w.-]+)\1\]\s*$([^[]*)/gm)].map(([, , name, body]) => [
      name!,
      isGatewayEntry(body!),
    ]);
  try {
    const servers = (JSON.parse(text) as Record<string, unknown>)[member];
    if (typeof servers !== "object" || servers === null) return [];
    return Object.entries(servers).map(([name, entry]) => [name, isGatewayEntry(JSON.stringify(entry))]);
  } catch {
    return [];
  }
}

/** `svc connect` starts the gateway by this file, or names the server's own path. */
const isGatewayEntry = (text: string): boolean =>
  (/svc(?:\.js)?"/.test(text) && /"gateway"/.test(text)) || /"https?:\/\/[^"]+\/mcp"/.test(text);
