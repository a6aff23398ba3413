/** Where in what was read stands what an argument puts in its place. */
import { isJsonObject, type Json } from "../../kernel/json.ts";
import { readKeys, tryTemplatePath } from "../../kernel/paths.ts";
import type { Manifest } from "../manifest/types.ts";

export type Keys = readonly (string | number)[];
type Undoing = Pick<Manifest, "compensation"> | null;

/** By the undo, which says how what was read becomes an argument again; else under the argument's own name. */
export function namedPlace(before: Json, manifest: Undoing, keys: Keys): Keys | undefined {
  const put = [undoPlace(manifest, keys), keys];
  return put.find((place) => place !== undefined && readKeys(before, place) !== undefined);
}

function undoPlace(manifest: Undoing, [name, ...rest]: Keys): Keys | undefined {
  const template = name === undefined ? undefined : manifest?.compensation?.args[String(name)];
  const path = typeof template === "string" ? tryTemplatePath(template) : undefined;
  return path?.root === "before" ? [...path.keys, ...rest] : undefined;
}

/** The only text that was read, where it is one: all of it, its one field that is a text, or its one part. */
export function soleTextPlace(before: Json): Keys | undefined {
  if (typeof before === "string") return [];
  if (!isJsonObject(before)) return undefined;
  const texts = Object.keys(before).filter((name) => typeof before[name] === "string");
  if (texts.length === 1) return texts;
  const { content } = before;
  const part = [...PART];
  return Array.isArray(content) && content.length === 1 && typeof readKeys(before, part) === "string"
    ? part
    : undefined;
}

/** What a tool without structured content answers. */
const PART = ["content", 0, "text"] as const;

/** As far as it can be told: by name, or because there is but one text. */
export function textPlace(before: Json, manifest: Undoing, keys: Keys): Keys | undefined {
  return namedPlace(before, manifest, keys) ?? soleTextPlace(before);
}
