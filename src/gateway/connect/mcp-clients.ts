/** The MCP clients that `svc connect` supports, with their configuration files and entry formats. */
import { join } from "node:path";

export const MCP_CLIENT_NAMES = ["claude-desktop", "claude-code", "cursor", "vscode", "codex"] as const;
export type ClientName = (typeof MCP_CLIENT_NAMES)[number];

/** How the client reaches the gateway: a command to start, or a URL to call. */
export type GatewayTarget = { command: string; args: string[] } | { url: string };

export interface ConfigLocations {
  home: string;
  cwd: string;
  platform: NodeJS.Platform;
  appdata: string | undefined;
}

interface ClientKind {
  title: string;
  /** Project configuration file, if the client has one. */
  project: string | null;
  user(places: ConfigLocations): string;
  format: "json" | "toml";
  /** The member that holds the servers. */
  member: string;
  /** Null if the client's file cannot express the target. */
  entry(target: GatewayTarget): Record<string, unknown> | null;
  /** Next step for the user after the file was written. */
  next: string;
  /** Built-in tools of the client, which bypass the gateway. */
  own_tools: string | null;
}

/** Keys are not written to files. Each client reads them from the environment in its own notation. */
export const KEY_VARIABLE = "SVC_KEY";

const CONFIG_HOME: Partial<Record<NodeJS.Platform, (places: ConfigLocations) => string>> = {
  darwin: ({ home }) => join(home, "Library", "Application Support"),
  win32: ({ home, appdata }) => appdata ?? join(home, "AppData", "Roaming"),
};

function configHome(places: ConfigLocations): string {
  return CONFIG_HOME[places.platform]?.(places) ?? join(places.home, ".config");
}

const bearer = (variable: string) => ({ Authorization: `Bearer ${variable}` });

export const CLIENT_KINDS: Record<ClientName, ClientKind> = {
  "claude-desktop": {
    title: "Claude Desktop",
    project: null,
    user: (places) => join(configHome(places), "Claude", "claude_desktop_config.json"),
    format: "json",
    member: "mcpServers",
    entry: (target) => ("command" in target ? { ...target } : null),
    next: "quit Claude Desktop and open it again",
    own_tools: null,
  },
  "claude-code": {
    title: "Claude Code",
    project: ".mcp.json",
    user: ({ home }) => join(home, ".claude.json"),
    format: "json",
    member: "mcpServers",
    entry: (target) =>
      "command" in target
        ? { type: "stdio", ...target }
        : { type: "http", ...target, headers: bearer(`\${${KEY_VARIABLE}}`) },
    next: "start claude in this folder and approve the server when it asks",
    own_tools: "shell, edits, web",
  },
  cursor: {
    title: "Cursor",
    project: join(".cursor", "mcp.json"),
    user: ({ home }) => join(home, ".cursor", "mcp.json"),
    format: "json",
    member: "mcpServers",
    entry: (target) =>
      "command" in target ? { ...target } : { ...target, headers: bearer(`\${env:${KEY_VARIABLE}}`) },
    next: "enable the server under Cursor Settings, MCP",
    own_tools: "terminal, edits",
  },
  vscode: {
    title: "VS Code",
    project: join(".vscode", "mcp.json"),
    user: (places) => join(configHome(places), "Code", "User", "mcp.json"),
    format: "json",
    member: "servers",
    entry: (target) =>
      "command" in target
        ? { type: "stdio", ...target }
        : { type: "http", ...target, headers: bearer(`\${env:${KEY_VARIABLE}}`) },
    next: "run MCP: List Servers and start it",
    own_tools: "terminal, edits",
  },
  codex: {
    title: "Codex",
    project: null,
    user: ({ home }) => join(home, ".codex", "config.toml"),
    format: "toml",
    member: "mcp_servers",
    entry: (target) =>
      "command" in target ? { ...target } : { ...target, bearer_token_env_var: KEY_VARIABLE },
    next: "start codex; codex mcp list shows it",
    own_tools: "shell, edits",
  },
};
