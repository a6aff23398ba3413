/** What the manifests of a pack name of a service's API: fields of requests, and paths into answers. */
import { isJsonObject, type JsonObject, type JsonValue } from "../../../src/kernel/json/json.ts";
import { templatePaths, tryTemplatePath } from "../../../src/kernel/paths.ts";
import type { ToolManifest } from "../../../src/rules/manifest/types.ts";

export interface NamedParts {
  /** Fields of a request that a template reads. */
  readonly fields: Set<string>;
  /** Field names of each request that an undo or a read makes. */
  readonly requests: { readonly from: string; readonly names: readonly string[] }[];
  /** Paths into an answer's body, joined with dots. */
  readonly answers: Set<string>;
}

/** Named parts by tool. */
export function namedParts(manifests: readonly ToolManifest[]): Map<string, NamedParts> {
  const found = new Map<string, NamedParts>();
  const of = (tool: string): NamedParts => {
    const parts = found.get(tool) ?? { fields: new Set(), requests: [], answers: new Set() };
    found.set(tool, parts);
    return parts;
  };
  for (const manifest of manifests) {
    of(manifest.tool);
    nameTemplates(manifest, of);
    for (const [part, call] of callsOf(manifest)) {
      of(call.tool).requests.push({ from: `${manifest.tool}: ${part}`, names: Object.keys(call.args) });
      const { expect, absent } = call;
      for (const shown of [expect, absent])
        for (const path of bodyPaths(shown)) of(call.tool).answers.add(path);
    }
  }
  return found;
}

interface NamedCall {
  readonly tool: string;
  readonly args: JsonObject;
  readonly expect?: JsonValue;
  readonly absent?: JsonValue | undefined;
}

function callsOf({ before, compensation, verification, effect_check }: ToolManifest): [string, NamedCall][] {
  const calls: [string, NamedCall | null | undefined][] = [
    ["before", before && { tool: before.tool, args: argsOf(before.args), absent: before.absent }],
    ["compensation", compensation],
    ["when_absent", compensation?.when_absent],
    ["verification", verification],
    ["effect_check", effect_check],
  ];
  return calls.flatMap(([part, call]) => (call == null ? [] : [[part, call]]));
}

const argsOf = (args: JsonValue): JsonObject => (isJsonObject(args) ? args : {});

/** Paths into arguments, result and earlier state. A path into the result names the answer of the tool itself. */
function nameTemplates(manifest: ToolManifest, of: (tool: string) => NamedParts): void {
  const { tool, before, compensation, verification, effect_check, card, idempotency } = manifest;
  const inCard = JSON.stringify(card ?? null).matchAll(/\{(\$args[^{}]*)\}/g);
  const templates = [before ?? null, compensation, verification, effect_check ?? null, idempotency];
  const sources = templates.flatMap((one) => templatePaths(one as JsonValue));
  for (const source of [...sources, ...[...inCard].map(([, path]) => path!)]) {
    const path = tryTemplatePath(source);
    if (path === undefined) continue;
    const keys = path.keys.map(String);
    if (path.root === "args" && keys[0] !== undefined) of(tool).fields.add(keys[0]);
    const answer = keys[0] === "body" ? keys.slice(1).join(".") : "";
    if (answer === "") continue;
    if (path.root === "result") of(tool).answers.add(answer);
    if (path.root === "before") of(before!.tool).answers.add(answer);
  }
}

/** Every path to a value that an expected answer names below its body. */
function bodyPaths(expected: JsonValue | undefined): string[] {
  if (!isJsonObject(expected)) return [];
  return leaves(expected["body"] ?? null, []).filter((path) => path !== "");
}

function leaves(value: JsonValue, path: readonly string[]): string[] {
  if (!isJsonObject(value)) return [path.join(".")];
  return Object.entries(value).flatMap(([name, inner]) => leaves(inner, [...path, name]));
}
