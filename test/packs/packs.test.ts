/**
 * The packs of services: each drilled undo restores the emulator's state, or differs only as the pack states. Two
 * packs are drilled here; `npm run prove -- packs` drills all. Each pack is compared with facts that were taken from the
 * service's published description, which `npm run prove -- packs --from <directory>` takes again.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { fromJson } from "../../src/kernel/json/json.ts";
import { readManifests } from "../../src/rules/manifest/load.ts";
import { ROOT } from "../support/files.ts";
import { verifies } from "../support/verifies.ts";
import { type ApiFacts, driftProblems } from "./apis/facts.ts";
import { DESCRIPTION_SOURCES } from "./apis/sources.ts";
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

  it("names no request and no field that the service's published description lacks", () => {
    verifies("beyond.services.drift");
    const source = DESCRIPTION_SOURCES[pack];
    // Linear's one manifest takes any body.
    if (source === undefined) return expect(pack).toBe("linear");
    const file = join(ROOT, "test/packs/apis", `${pack}.json`);
    const facts = fromJson<ApiFacts>(JSON.parse(readFileSync(file, "utf8")));
    expect(facts.from).toBe(source.from);
    expect(driftProblems(manifestsOf(pack).all, facts, source.undescribed)).toEqual([]);
    // An exception is one: the facts have no such request.
    for (const tool of source.undescribed ?? []) expect(facts.operations[tool], tool).toBeUndefined();
  });
});

it("finds requests and fields that a description lacks", () => {
  verifies("beyond.services.drift");
  const operation = { method: "GET", path: "/things/{id}", required: [], optional: [], answer: ["name"] };
  const update = {
    method: "PATCH",
    path: "/things/{id}",
    required: ["version"],
    optional: ["name"],
    answer: [],
  };
  const facts = {
    from: "x/y",
    version: "1",
    date: "2026-01-01",
    operations: { "t.get": operation, "t.put": update },
  };
  const { all: manifests } = readManifests([{ file: "t.yaml", text: DRIFTED }]);
  expect(driftProblems(manifests, facts)).toEqual([
    "t.put: no field title",
    "t.put: compensation: t.put has no field title",
    "t.put: compensation: t.put needs version",
    "t.get: its answer has no title",
    "t.delete: the description has no such request",
  ]);
});

const DRIFTED = `
- tool: t.put
  effect: reversible
  permission: t
  http: {host: t.example, method: PATCH, path: "/things/{id}"}
  before: {tool: t.get, args: {id: $args.id}}
  compensation: {tool: t.put, args: {id: $args.id, title: $before.body.title}}
  effect_check: {tool: t.get, args: {id: $args.id}, expect: {body: {title: $args.title}}}
- {tool: t.get, effect: read, permission: t, http: {host: t.example, method: GET, path: "/things/{id}"}}
- {tool: t.delete, effect: irreversible, permission: t, http: {host: t.example, method: DELETE, path: "/things/{id}"}}
`;

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
