/** The packs, and which of them speaks for the tools of a server. */
import type { JsonObject } from "../../../kernel/json.ts";
import { filesystem } from "./filesystem.ts";
import { git } from "./git.ts";
import { everything, sequentialThinking } from "./harmless.ts";
import { memory } from "./memory.ts";
import { fingerprint, type Pack, type PackEntry, type PackRule, toolsOf } from "./pack.ts";
import { sqlite } from "./sqlite.ts";

export const PACKS: Readonly<Record<string, Pack>> = {
  filesystem,
  memory,
  git,
  sqlite,
  everything,
  "sequential-thinking": sequentialThinking,
};

/** The pack whose tools the server all has, by their names; a server may have more. */
export function packFor(names: ReadonlySet<string>): Pack | undefined {
  return Object.values(PACKS).find(({ tools }) => Object.keys(tools).every((name) => names.has(name)));
}

/** The entry for a tool, where it and all that it calls are what was tried. */
export function triedEntry(
  { tools, entries }: Pack,
  name: string,
  definitions: ReadonlyMap<string, JsonObject>,
): PackEntry | undefined {
  const entry = Object.hasOwn(entries, name) ? entries[name]! : undefined;
  if (entry === undefined) return undefined;
  const same = (tool: string) => tools[tool] === fingerprint(definitions.get(tool) ?? {});
  return toolsOf(name, entry).every(same) ? entry : undefined;
}

/** The rules that go with what was drafted, for tools under the names that the gateway shows. */
export function packRules(routes: readonly { tool: string; name: string }[]): PackRule[] {
  const shown = new Map(routes.map(({ name, tool }) => [name, tool]));
  const { rules = [] } = packFor(new Set(shown.keys())) ?? {};
  return rules.map((rule) => ({ ...rule, tool: shown.get(rule.tool) ?? rule.tool }));
}
