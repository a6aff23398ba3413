/** All packs, and the lookup of the pack that applies to a server. */
import type { JsonObject } from "../../../kernel/json/json.ts";
import { filesystemPack } from "./filesystem.ts";
import { gitPack } from "./git.ts";
import { memoryPack } from "./memory.ts";
import { type ManifestPack, type PackEntry, type PackRule, schemaFingerprint, toolsOf } from "./pack.ts";
import { everythingPack, sequentialThinkingPack } from "./read-only.ts";
import { sqlitePack } from "./sqlite.ts";

export const MANIFEST_PACKS: Readonly<Record<string, ManifestPack>> = {
  filesystem: filesystemPack,
  memory: memoryPack,
  git: gitPack,
  sqlite: sqlitePack,
  everything: everythingPack,
  "sequential-thinking": sequentialThinkingPack,
};

/** The pack whose tools the server offers completely. The server may offer more tools. */
export function packFor(names: ReadonlySet<string>): ManifestPack | undefined {
  return Object.values(MANIFEST_PACKS).find(({ tools }) =>
    Object.keys(tools).every((name) => names.has(name)),
  );
}

/** The entry for a tool, if the tool and all tools that it calls have the tested definitions. */
export function testedEntry(
  { tools, entries }: ManifestPack,
  name: string,
  definitions: ReadonlyMap<string, JsonObject>,
): PackEntry | undefined {
  const entry = Object.hasOwn(entries, name) ? entries[name]! : undefined;
  if (entry === undefined) return undefined;
  const same = (tool: string) => tools[tool] === schemaFingerprint(definitions.get(tool) ?? {});
  return toolsOf(name, entry).every(same) ? entry : undefined;
}

/** The rules of the pack, with the tool names that the gateway shows. */
export function packRules(routes: readonly { tool: string; name: string }[]): PackRule[] {
  const shown = new Map(routes.map(({ name, tool }) => [name, tool]));
  const { rules = [] } = packFor(new Set(shown.keys())) ?? {};
  return rules.map((rule) => ({ ...rule, tool: shown.get(rule.tool) ?? rule.tool }));
}
