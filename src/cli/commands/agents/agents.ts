/** `svc agents`: the coding agents and MCP servers on this machine, and whether each is governed. */
import { homedir } from "node:os";
import { resolve } from "node:path";
import { type AgentEntry, listAgents, slowHooks } from "../../../hook/inventory.ts";
import { hooksFolder } from "../../../hook/settings.ts";
import type { CommandFlags, RegisterCommand } from "../../context.ts";
import { alignColumns, type CommandIo, escapeControls } from "../../io.ts";
import { listMcpServers } from "./mcp-inventory.ts";

export const registerAgents: RegisterCommand = (program, { io }) => {
  program
    .command("agents")
    .description("List the coding agents and MCP servers on this machine")
    .option("--dir <dir>", "directory of the hooks' files (default: ~/.config/svc/hooks)")
    .option("--json", "print the list as JSON")
    .action((flags: CommandFlags) => {
      const folder = resolve(io.cwd, (flags["dir"] as string | undefined) ?? hooksFolder(io.env));
      const places = { home: io.env["HOME"] || homedir(), env: io.env, folder };
      const agents = listAgents(places);
      const all = [...agents, ...listMcpServers(io)];
      if (flags["json"]) return io.out(JSON.stringify({ agents: all }, null, 2));
      if (all.length === 0) io.err("no coding agent and no MCP server was found");
      for (const line of alignColumns(all.map((one) => rowOf(one, io)))) io.out(line);
      for (const client of slowHooks(places))
        io.err(
          `slow: every event of ${client} starts Node; install perl or nc, and run svc connect ${client} --hooks`,
        );
    });
};

const WORDS: Record<AgentEntry["governed"], string> = {
  yes: "governed",
  partly: "partly",
  no: "not governed",
};

function rowOf(
  { client, version, workspace, governed, missing, last_seen_ms }: AgentEntry,
  io: CommandIo,
): string[] {
  const paint = { yes: io.color.green, partly: io.color.yellow, no: io.color.red }[governed];
  return [
    escapeControls([client, version].filter((part) => part !== null).join(" ")),
    escapeControls(workspace ?? "other workspaces"),
    paint(WORDS[governed]),
    last_seen_ms === null ? "never seen" : `last seen ${new Date(last_seen_ms).toISOString()}`,
    escapeControls(missing.join("; ")),
  ];
}
