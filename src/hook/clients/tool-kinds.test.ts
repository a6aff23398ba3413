/** The table of tools against the tool lists of the clients: the kept lists, and those of the clients on this machine. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { verifies } from "../../../test/support/verifies.ts";
import { toolKind } from "./tool-kinds.ts";

const path = new URL("../../../test/cases/hooks/tools.json", import.meta.url);
const KEPT = JSON.parse(readFileSync(path, "utf8")) as Record<string, { version: string; tools: string[] }>;

/** Packages that npm installed for everybody, or in the directory that the variable names. */
const installed =
  process.env["SVC_CLIENT_PACKAGES"] ?? join(dirname(process.execPath), "../lib/node_modules");

/** Tool names in the installed packages: constants of Gemini CLI, and the type declarations of Claude Code. */
function installedTools(): string[] {
  const bundle = join(installed, "@google/gemini-cli/bundle");
  const types = join(installed, "@anthropic-ai/claude-code/sdk-tools.d.ts");
  const files = existsSync(bundle) ? readdirSync(bundle).filter((name) => name.endsWith(".js")) : [];
  const gemini = files.flatMap((name) =>
    [...readFileSync(join(bundle, name), "utf8").matchAll(/\b[A-Z_]+_TOOL_NAME = "([a-z_]+)"/g)].map(
      ([, tool]) => tool!,
    ),
  );
  const declared = existsSync(types) ? readFileSync(types, "utf8") : "";
  const claude = [...declared.matchAll(/^export interface (\w+)Input\b/gm)].map(
    ([, tool]) => NAMED[tool!] ?? tool!,
  );
  return [...new Set([...gemini, ...claude])].filter((name) => name !== "Mcp");
}

/** Declarations with another name than their tool. */
const NAMED: Readonly<Record<string, string>> = {
  FileEdit: "Edit",
  FileRead: "Read",
  FileWrite: "Write",
  ListMcpResources: "ListMcpResourcesTool",
  ReadMcpResource: "ReadMcpResourceTool",
  ReadMcpResourceDir: "ReadMcpResourceDirTool",
};

describe("the table of tools", () => {
  it.each(Object.entries(KEPT))("has every built-in tool of %s", (_, { tools }) => {
    verifies("beyond.hooks.client-tools");
    expect(tools.filter((tool) => toolKind(tool) === undefined)).toEqual([]);
  });

  it("has every built-in tool of the clients on this machine", () => {
    verifies("beyond.hooks.client-tools");
    expect(installedTools().filter((tool) => toolKind(tool) === undefined)).toEqual([]);
  });

  it.each(["update_topic", "enter_plan_mode", "ListAgents", "SendMessage", "ScheduleWakeup", "TaskCreate"])(
    "lets bookkeeping pass: %s",
    (tool) => {
      verifies("beyond.hooks.client-tools");
      expect(toolKind(tool)).toBe("client");
    },
  );

  it.each(["write_stdin", "REPL", "Workflow", "RemoteTrigger", "CronCreate"])("asks for %s", (tool) => {
    verifies("beyond.hooks.client-tools");
    expect(toolKind(tool)).toBe("asks");
  });
});
