/**
 * Checks across manifests. A read-back tool that writes and circular prerequisites are errors; probable mistakes are
 * warnings.
 */
import { routeClashes } from "../http/routes.ts";
import { didYouMean } from "../schema-problems.ts";
import type { CheckedEntry } from "./entry.ts";
import { manifestSet } from "./set.ts";
import type { ManifestSet, ToolEffect, ToolManifest } from "./types.ts";

const WRITES: ReadonlySet<ToolEffect> = new Set(["reversible", "compensable", "irreversible"]);

/** Reports read-back tools that the set declares as writing. */
export function reportWritingReadBacks(entries: readonly CheckedEntry[]): void {
  const effects = new Map<string, ToolEffect>();
  for (const { manifest } of entries) if (manifest) effects.set(manifest.tool, manifest.effect);
  for (const entry of entries) {
    notARead(entry, effects, "before");
    notARead(entry, effects, "effect_check");
    const tool = entry.manifest?.verification?.tool;
    const effect = tool === undefined ? undefined : effects.get(tool);
    if (effect === undefined || !WRITES.has(effect)) continue;
    const text = `verification.tool: ${tool} is declared ${effect}; a read-back must use a tool that only reads`;
    entry.problems.push({ line: entry.line, text });
  }
}

/** Reports a read around the call whose tool is not declared as read-only. */
function notARead(
  entry: CheckedEntry,
  effects: ReadonlyMap<string, ToolEffect>,
  field: "before" | "effect_check",
): void {
  const tool = entry.manifest?.[field]?.tool;
  const effect = tool === undefined ? undefined : effects.get(tool);
  if (effect === undefined || effect === "read") return;
  const text = `${field}.tool: ${tool} is declared ${effect}; ${field} must use a tool of effect read`;
  entry.problems.push({ line: field === "before" ? entry.before_line : entry.line, text });
}

/** Reports requests that two tools fit, and undos and reads of `http` tools that are not `http` tools themselves. */
export function reportHttpProblems(entries: readonly CheckedEntry[]): void {
  const loaded = entries.filter(({ manifest }) => manifest !== undefined);
  const clashes = routeClashes(loaded.map(({ manifest }) => manifest!));
  for (const [at, other] of clashes) {
    const { file, line, manifest } = loaded[other]!;
    const text = `http: ${manifest!.tool} at ${file}:${line} fits the same requests; make method, host or path differ`;
    loaded[at]!.problems.push({ line: loaded[at]!.line, text });
  }
  const plain = new Set(loaded.flatMap(({ manifest }) => (manifest!.http ? [] : [manifest!.tool])));
  for (const { manifest, line, problems } of loaded) {
    if (manifest!.http === undefined) continue;
    for (const [field, tool] of helpersOf(manifest!))
      if (plain.has(tool)) {
        const text = `${field}: ${tool} has no http; the undos and reads of an http tool are http tools`;
        problems.push({ line, text });
      }
  }
}

function helpersOf(manifest: ToolManifest): [field: string, tool: string][] {
  const { before, compensation, verification, effect_check } = manifest;
  const parts = [
    ["before.tool", before],
    ["compensation.tool", compensation],
    ["compensation.when_absent.tool", compensation?.when_absent],
    ["verification.tool", verification],
    ["effect_check.tool", effect_check],
  ] as const;
  return parts.flatMap(([field, part]) => (part == null ? [] : [[field, part.tool]]));
}

const RING = "requires: the prerequisites form a cycle, so the tool can never run; remove one of them";

/** Reports circular prerequisites: such a tool would be blocked forever. */
export function reportRequirementCycles(entries: readonly CheckedEntry[]): void {
  const set = manifestSet(entries.flatMap(({ manifest }) => manifest ?? []));
  const ringed = new Set(ringedManifests(set));
  for (const { manifest, problems, requires_line } of entries)
    if (manifest !== undefined && ringed.has(manifest)) problems.push({ line: requires_line, text: RING });
}

/** Reports circular prerequisites across sets that were read separately, one line each. */
export function requirementCycleProblems(
  set: ManifestSet,
  start: (manifest: ToolManifest) => string,
): string[] {
  return ringedManifests(set).map((manifest) => `${start(manifest)}${RING}`);
}

function ringedManifests(set: ManifestSet): ToolManifest[] {
  const ringed = toolsInRings(set);
  return set.all.filter((manifest) => ringed.has(manifest.tool) && set.active(manifest.tool) === manifest);
}

export function setWarnings(set: ManifestSet, start: (manifest: ToolManifest) => string): string[] {
  const warnings: string[] = [];
  for (const manifest of set.all) {
    const tell = (text: string) => warnings.push(`${start(manifest)}${text}`);
    for (const tool of manifest.requires) {
      if (set.active(tool) === undefined) tell(`requires: ${tool} has no manifest, so it can never have run`);
    }
    const read = manifest.before?.tool;
    if (read !== undefined && set.active(read) === undefined)
      tell(`before.tool: ${read} has no manifest, so the read is impossible and the call is blocked`);
    const check = manifest.effect_check?.tool;
    if (check !== undefined && set.active(check) === undefined)
      tell(`effect_check.tool: ${check} has no manifest, so the effect is not checked`);
    if (manifest.lifecycle === "deprecated" && set.active(manifest.tool) === manifest) {
      tell("lifecycle: deprecated; it still works, but should be replaced");
    }
  }
  return warnings;
}

/** Tools that are on a cycle of prerequisites or depend on one. Not recursive, since chains can be long. */
function toolsInRings(set: ManifestSet): Set<string> {
  const waiting = new Map<string, Set<string>>();
  const dependents = new Map<string, string[]>();
  for (const { tool } of set.all) {
    const needs = new Set(
      (set.active(tool)?.requires ?? []).filter((name) => set.active(name) !== undefined),
    );
    waiting.set(tool, needs);
    for (const name of needs) {
      const list = dependents.get(name);
      if (list === undefined) dependents.set(name, [tool]);
      else list.push(tool);
    }
  }
  const ready = [...waiting.keys()].filter((tool) => waiting.get(tool)!.size === 0);
  for (let tool = ready.pop(); tool !== undefined; tool = ready.pop()) {
    waiting.delete(tool);
    for (const dependent of dependents.get(tool) ?? []) {
      const needs = waiting.get(dependent);
      needs?.delete(tool);
      if (needs?.size === 0) ready.push(dependent);
    }
  }
  return new Set(waiting.keys());
}

/** Path without its `$`, which would be passed on as literal text. */
const UNMARKED_PATH = /^(?:args|result)(?:\.[A-Za-z_]|\[)/;

/** Warnings on probable mistakes. Only checks print them, since the author can be right. */
export function lintManifests(set: ManifestSet): string[] {
  const found: string[] = [];
  const names = [...new Set(set.all.map(({ tool }) => tool))];
  for (const { tool, requires, before, compensation, verification, effect_check } of set.all) {
    for (const name of requires) {
      if (set.active(name) === undefined)
        found.push(
          `${tool}: requires: ${name} has no manifest here, so it can never have run${didYouMean(name, names)}`,
        );
    }
    for (const [field, part] of [
      ["before", before] as const,
      ["compensation", compensation] as const,
      ["compensation.when_absent", compensation?.when_absent] as const,
      ["verification", verification] as const,
      ["effect_check", effect_check] as const,
    ]) {
      if (part === null || part === undefined) continue;
      if (set.active(part.tool) === undefined)
        found.push(
          `${tool}: ${field}.tool: ${part.tool} has no manifest here${didYouMean(part.tool, names)}`,
        );
      for (const [name, value] of Object.entries(part.args)) {
        if (typeof value === "string" && UNMARKED_PATH.test(value))
          found.push(
            `${tool}: ${field}.args.${name}: ${value} is plain text; write $${value} for the value there`,
          );
      }
    }
  }
  return found;
}
