/**
 * Synthetic results and before states, built from the manifest, for calls that were never made or whose before state
 * was not captured. They contain the values that the undo reads.
 */
import type { OutcomeInput } from "../govern/decide/outcome.ts";
import type { JsonValue } from "../kernel/json/json.ts";
import { type PathRoot, parseTemplatePath, templatePaths, type ValuePath } from "../kernel/paths.ts";
import type { ToolManifest } from "../rules/manifest/types.ts";

/** Maximum length of a synthetic list; no undo reads further. */
const MAX_LIST_LENGTH = 1_000;

/** Successful outcome with the known result, or a synthetic one. */
export function synthesizeResult(manifest: ToolManifest | null, known?: JsonValue): OutcomeInput {
  const result = known === undefined ? madeUpResult(manifest) : known;
  const before = synthesizeBefore(manifest);
  return {
    status: "succeeded",
    ...(result === undefined ? {} : { result }),
    ...(before === undefined ? {} : { before }),
  };
}

/** Undefined if the undo reads nothing from the result, or values that cannot be synthesized. */
function madeUpResult(manifest: ToolManifest | null): JsonValue | undefined {
  return madeUp(manifest, "result");
}

/** Undefined if there is no `before` read, or if its values cannot be synthesized. */
export function synthesizeBefore(manifest: ToolManifest | null): JsonValue | undefined {
  if (manifest?.before === undefined) return undefined;
  // The read must exist even if the undo uses none of its values: without it the step cannot be undone.
  return undoReads(manifest, "before").length === 0 ? {} : madeUp(manifest, "before");
}

function madeUp(manifest: ToolManifest | null, root: PathRoot): JsonValue | undefined {
  const paths = undoReads(manifest, root);
  if (paths.length === 0) return undefined;
  if (paths.some(({ keys }) => keys.some((key) => typeof key === "number" && key >= MAX_LIST_LENGTH)))
    return undefined;
  let value: JsonValue | undefined;
  // Shorter paths first, because a longer path turns the value above it into an object.
  for (const path of paths.toSorted((a, b) => a.keys.length - b.keys.length))
    value = placed(value, path.keys, `<${path.source}>`);
  return value;
}

/** Paths into the result, or into the before state, that the undo and its read-back use. */
function undoReads(manifest: ToolManifest | null, root: PathRoot): ValuePath[] {
  if (!manifest?.compensation) return [];
  const templates: JsonValue[] = [manifest.compensation.args, manifest.verification?.args ?? null];
  const sources = new Set(templates.flatMap(templatePaths));
  return [...sources].map(parseTemplatePath).filter((path) => path.root === root);
}

function placed(here: JsonValue | undefined, keys: readonly (string | number)[], value: string): JsonValue {
  const [key, ...rest] = keys;
  if (key === undefined) return value;
  if (typeof key === "number") {
    const list: JsonValue[] = Array.isArray(here) ? [...here] : [];
    while (list.length <= key) list.push(null);
    list[key] = placed(list[key] ?? undefined, rest, value);
    return list;
  }
  const object = here !== null && typeof here === "object" && !Array.isArray(here) ? here : {};
  const inner = Object.hasOwn(object, key) ? object[key] : undefined;
  return { ...object, [key]: placed(inner, rest, value) };
}
