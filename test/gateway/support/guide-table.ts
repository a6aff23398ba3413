/** The tables of tested servers and clients, which the gateway's tests compare with their results. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../../support/files.ts";

/** The rows whose first cell is this, or begins with it. */
export function rowsOf(first: string): string[][] {
  const lines = readFileSync(join(ROOT, "docs/internals/gateway-compatibility.md"), "utf8").split("\n");
  const rows = lines.map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
  return rows.filter(([cell = ""]) => cell === first || cell.startsWith(`${first} `));
}

export const versionOf = (entry: string, modules = join(ROOT, "node_modules")): string =>
  JSON.parse(readFileSync(join(modules, entry, "package.json"), "utf8")).version;
