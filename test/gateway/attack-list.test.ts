/** The list of attacks on sign-in names statements that exist, and every table of tested programs names its version. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { CLIENT_PACKAGES } from "../clients/support/install.ts";
import { REQUIREMENTS } from "../requirements/index.ts";
import { ROOT } from "../support/files.ts";
import { rowsOf, versionOf } from "./support/guide-table.ts";

it("names a statement for each attack", () => {
  const text = readFileSync(join(ROOT, "docs/internals/oauth-attacks.md"), "utf8");
  const rows = text.split("\n").filter((line) => line.startsWith("| ") && !/^\| (?:Attack |- )/.test(line));
  const known = new Set<string>(REQUIREMENTS.map(({ id }) => id));
  const named = rows.map((row) => /`((?:beyond|ops)\.[\w.-]+)` \|$/.exec(row)?.[1] ?? row);
  expect(named.length).toBeGreaterThan(15);
  expect(named.filter((id) => !known.has(id))).toEqual([]);
});

it("names the tested versions of programs that sign in", () => {
  const second = (first: string) => rowsOf(first)[0]?.[1];
  expect([
    second("`mcp-remote`"),
    second("`mcporter`"),
    second("MCP Inspector, its"),
    second("Codex"),
    second("Claude Code"),
    second("MCP SDK 2 client"),
    second("example server of MCP SDK 1"),
  ]).toEqual([
    CLIENT_PACKAGES["mcp-remote"].version,
    CLIENT_PACKAGES.mcporter.version,
    CLIENT_PACKAGES.inspector.version,
    CLIENT_PACKAGES.codex.version,
    CLIENT_PACKAGES["claude-code"].version,
    versionOf("@modelcontextprotocol/client"),
    versionOf("@modelcontextprotocol/sdk"),
  ]);
});
