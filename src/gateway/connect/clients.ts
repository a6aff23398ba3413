/** The MCP clients that `svc connect` knows: where each keeps its configuration and how an entry looks. */
import { join } from "node:path";

export const CLIENTS = ["claude-desktop", "claude-code", "cursor", "vscode", "codex"] as const;
export type ClientName = (typeof CLIENTS)[number];

/** How the client reaches the gateway: it starts it, or it calls it. */
export type Target = { command: string; args: string[] } | { url: string };

export interface Places {
  home: string;
  cwd: string;
  platform: NodeJS.Platform;
  appdata: string | undefined;
}

interface ClientKind {
  title: string;
  /** The file of a project, where the client has one. */
  project: string | null;
  user(places: Places): string;
  format: "json" | "toml";
  /** The member that holds the servers. */
  member: string;
  /** Null where the client's file cannot say it. */
  entry(target: Target): Record<string, unknown> | null;
  /** What to do once the file is written. */
  next: string;
  /** What it can do without any server, and so around the gateway. */
  own_tools: string | null;
}

/** Keys stay out of files: each client has its own way of reading one from the environment. */
export const KEY_VARIABLE = "SVC_KEY";

const CONFIG_HOME: Partial<Record<NodeJS.Platform, (places: Places) => string>> = {
  darwin: ({ home }) => join(home, "Library", "Application Support"),
  win32: ({ home, appdata }) => appdata ?? join(home, "AppData", "Roaming"),
};

function configHome(places: Places): string {
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
