/** Finds the part of a `before` read that an argument replaces. */
import { isJsonObject, type JsonValue } from "../../../kernel/json/json.ts";
import { readKeys, tryTemplatePath } from "../../../kernel/paths.ts";
import type { ToolManifest } from "../../../rules/manifest/types.ts";

export type PathKeys = readonly (string | number)[];
type Undoing = Pick<ToolManifest, "compensation"> | null;

/** Locates the value by the undo's template, which maps the read to arguments, or else by the argument's name. */
export function locateByName(before: JsonValue, manifest: Undoing, keys: PathKeys): PathKeys | undefined {
  const put = [undoPlace(manifest, keys), keys];
  return put.find((place) => place !== undefined && readKeys(before, place) !== undefined);
}

function undoPlace(manifest: Undoing, [name, ...rest]: PathKeys): PathKeys | undefined {
  const template = name === undefined ? undefined : manifest?.compensation?.args[String(name)];
  const path = typeof template === "string" ? tryTemplatePath(template) : undefined;
  return path?.root === "before" ? [...path.keys, ...rest] : undefined;
}

/** Path of the only text in a read: the read itself, its only string field, or its only content part. */
export function locateSoleText(before: JsonValue): PathKeys | undefined {
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

/** Path of the text in the answer of a tool without structured content. */
const PART = ["content", 0, "text"] as const;

/** Locates the value by name, or else takes the only text. */
export function locateText(before: JsonValue, manifest: Undoing, keys: PathKeys): PathKeys | undefined {
  return locateByName(before, manifest, keys) ?? locateSoleText(before);
}
