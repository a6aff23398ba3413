/**
 * The packs of services: each drilled undo restores the emulator's state, or differs only as the pack states. Two
 * packs are drilled here; `npm run prove -- packs` drills all. `SVC_PACKS_OPENAPI` names a directory with the services'
 * published API descriptions (`<pack>.json`). Each tool is then compared with them.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { isJsonObject, type JsonObject } from "../../src/kernel/json/json.ts";
import { readManifests } from "../../src/rules/manifest/load.ts";
import { parseYaml } from "../../src/rules/yaml.ts";
import { ROOT } from "../support/files.ts";
import { verifies } from "../support/verifies.ts";
import { drillPack } from "./drill.ts";
import { PACK_DRILLS } from "./services/all.ts";

const FOLDER = join(ROOT, "packs/services");
const PROVEN = JSON.parse(readFileSync(join(FOLDER, "proven.json"), "utf8")) as {
  emulator: string;
  tools: string[];
};
const PACKS = readdirSync(FOLDER).flatMap((name) => (name.endsWith(".yaml") ? [name.slice(0, -5)] : []));
const manifestsOf = (pack: string) =>
  readManifests([{ file: `${pack}.yaml`, text: readFileSync(join(FOLDER, `${pack}.yaml`), "utf8") }]);
/** Drilled in every run of the tests. */
const ALWAYS = new Set(["stripe", "slack"]);
/** Tools that the service offers, but that its published description lacks. Slack's is from 2020. */
const UNDESCRIBED: Readonly<Record<string, string[]>> = {
  slack: ["slack.bookmarks.list", "slack.bookmarks.add", "slack.bookmarks.remove"],
};
const all = process.env["SVC_PROVE_PACKS"] === "all";
const unique = (names: readonly string[]) => [...new Set(names)].sort();

it("lists exactly the tools that are drilled", () => {
  verifies("beyond.services.proven");
  const drilled = PACK_DRILLS.flatMap(({ tools }) => tools.map(({ tool }) => tool));
  expect(unique(PROVEN.tools)).toEqual(unique(drilled));
  const { devDependencies } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  expect(PROVEN.emulator).toBe(`emulate@${devDependencies.emulate}`);
});

describe.each(PACKS)("the pack %s", (pack) => {
  it("has effect, card and undo for each tool, and says what stays", () => {
    verifies("beyond.services.packs");
    const { all: manifests, warnings } = manifestsOf(pack);
    expect(warnings).toEqual([]);
    for (const { tool, effect, http, card, compensation } of manifests) {
      expect(http, tool).toBeDefined();
      if (effect === "read") continue;
      expect(card?.title, tool).toBeTruthy();
      expect(effect === "irreversible", tool).toBe(compensation === null);
      // An undo that is not exact leaves something behind, and says it.
      if (effect === "compensable") expect(compensation!.residue, tool).not.toEqual([]);
    }
  });

  const file = join(process.env["SVC_PACKS_OPENAPI"] ?? "", `${pack}.json`);
  if (process.env["SVC_PACKS_OPENAPI"] !== undefined && existsSync(file))
    it("has no tool that the service's published description lacks", () => {
      verifies("beyond.services.drift");
      const known = operationsOf(parseYaml(readFileSync(file, "utf8"), file).value as JsonObject);
      const absent = manifestsOf(pack).all.filter(({ http, effect }) => {
        // Slack takes POST for every method; its description says GET for those that only read.
        const methods = pack === "slack" && effect === "read" ? [http!.method, "GET"] : [http!.method];
        return !methods.some((method) => known.has(`${method} ${plainPath(http!.path)}`));
      });
      expect(absent.map(({ tool }) => tool)).toEqual(UNDESCRIBED[pack] ?? []);
    });
});

/** Operations of an API description as `METHOD /path`, without the names of places. */
function operationsOf({ paths, basePath, servers }: JsonObject): Set<string> {
  const server = Array.isArray(servers) && isJsonObject(servers[0]) ? String(servers[0]["url"]) : "";
  const prefix = typeof basePath === "string" ? basePath : server.replace(/^https?:\/\/[^/]+/, "");
  const found = Object.entries(paths as JsonObject).flatMap(([path, item]) =>
    Object.keys(item as JsonObject).map(
      (method) => `${method.toUpperCase()} ${plainPath(`${prefix.replace(/\/$/, "")}${path}`)}`,
    ),
  );
  return new Set(found);
}

const plainPath = (path: string): string =>
  path.replace(/heads\/\{[^}]*\}$/, "{}").replace(/\{[^}]*\}/g, "{}");

describe.each(
  PACK_DRILLS.filter(({ pack }) => all || ALWAYS.has(pack)).map((one) => [one.pack, one] as const),
)("against an emulator, %s", (_, drill) => {
  it("undoes each drilled call, and restores what its manifest promises", { timeout: 180_000 }, async () => {
    verifies("beyond.services.drilled", "beyond.effect.proxy");
    const drilled = await drillPack(drill);
    expect(drilled.filter(({ problem }) => problem !== null)).toEqual([]);
    expect(drilled.map(({ tool }) => tool)).toEqual(drill.tools.map(({ tool }) => tool));
  });
});
