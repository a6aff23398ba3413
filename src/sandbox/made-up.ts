/**
 * What a call would answer and find there, made up from its manifest, where it was never made or what it found was not
 * captured: it holds what the undo will ask for.
 */
import type { OutcomeInput } from "../engine/outcome.ts";
import type { Json } from "../kernel/json.ts";
import { type Path, parseTemplatePath, type Root, templatePaths } from "../kernel/paths.ts";
import type { Manifest } from "../model/manifest/types.ts";

/** No undo reads so far into a list; a longer one is not worth making up. */
const LONGEST_LIST = 1_000;

/** A call that went well, with what was found there before it and, where none is known, with a made-up answer. */
export function madeUpSuccess(manifest: Manifest | null, known?: Json): OutcomeInput {
  const result = known === undefined ? madeUpResult(manifest) : known;
  const before = madeUpBefore(manifest);
  return {
    status: "succeeded",
    ...(result === undefined ? {} : { result }),
    ...(before === undefined ? {} : { before }),
  };
}

/** Undefined where the undo asks for nothing of the result, or for what cannot be made up. */
function madeUpResult(manifest: Manifest | null): Json | undefined {
  return madeUp(manifest, "result");
}

/** Undefined where nothing is read before the call, or for what cannot be made up. */
export function madeUpBefore(manifest: Manifest | null): Json | undefined {
  if (manifest?.before === undefined) return undefined;
  // An undo that names nothing of what was there still needs the read: without it the step cannot be undone.
  return undoReads(manifest, "before").length === 0 ? {} : madeUp(manifest, "before");
}

function madeUp(manifest: Manifest | null, root: Root): Json | undefined {
  const paths = undoReads(manifest, root);
  if (paths.length === 0) return undefined;
  if (paths.some(({ keys }) => keys.some((key) => typeof key === "number" && key >= LONGEST_LIST)))
    return undefined;
  let value: Json | undefined;
  // Shorter paths first: what lies inside another value turns that value into an object.
  for (const path of paths.toSorted((a, b) => a.keys.length - b.keys.length))
    value = placed(value, path.keys, `<${path.source}>`);
  return value;
}

/** Paths into the result, or into what was there before, that the undo and its read-back name. */
function undoReads(manifest: Manifest | null, root: Root): Path[] {
  if (!manifest?.compensation) return [];
  const templates: Json[] = [manifest.compensation.args, manifest.verification?.args ?? null];
  const sources = new Set(templates.flatMap(templatePaths));
  return [...sources].map(parseTemplatePath).filter((path) => path.root === root);
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
