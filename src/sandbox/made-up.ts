/** A result made up from a manifest, for a call that was never made: it holds what the undo will ask for. */
import type { Json } from "../kernel/json.ts";
import { type Path, parseTemplatePath, templatePaths } from "../kernel/paths.ts";
import type { Manifest } from "../model/manifest/types.ts";

/** No undo reads so far into a list; a longer one is not worth making up. */
const LONGEST_LIST = 1_000;

/** Undefined where the undo asks for nothing of the result, or for what cannot be made up. */
export function madeUpResult(manifest: Manifest | null): Json | undefined {
  const paths = resultPaths(manifest);
  if (paths.length === 0) return undefined;
  if (paths.some(({ keys }) => keys.some((key) => typeof key === "number" && key >= LONGEST_LIST)))
    return undefined;
  let result: Json | undefined;
  // Shorter paths first: what lies inside another value turns that value into an object.
  for (const path of paths.toSorted((a, b) => a.keys.length - b.keys.length))
    result = placed(result, path.keys, `<${path.source}>`);
  return result;
}

/** Paths into the result that the undo and its read-back name. */
function resultPaths(manifest: Manifest | null): Path[] {
  if (!manifest?.compensation) return [];
  const templates: Json[] = [manifest.compensation.args, manifest.verification?.args ?? null];
  const sources = new Set(templates.flatMap(templatePaths));
  return [...sources].map(parseTemplatePath).filter((path) => path.root === "result");
}

function placed(here: Json | undefined, keys: readonly (string | number)[], value: string): Json {
  const [key, ...rest] = keys;
  if (key === undefined) return value;
  if (typeof key === "number") {
    const list: Json[] = Array.isArray(here) ? [...here] : [];
    while (list.length <= key) list.push(null);
    list[key] = placed(list[key] ?? undefined, rest, value);
    return list;
  }
  const object = here !== null && typeof here === "object" && !Array.isArray(here) ? here : {};
  const inner = Object.hasOwn(object, key) ? object[key] : undefined;
  return { ...object, [key]: placed(inner, rest, value) };
}
