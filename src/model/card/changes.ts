/** What a call would change: what was there, what it puts there, line by line. */
import { type DiffLine, diffLines } from "../../kernel/diff.ts";
import { isJsonObject, type Json } from "../../kernel/json.ts";
import { readKeys, tryPath } from "../../kernel/paths.ts";
import { visibleText } from "../../kernel/visible.ts";
import { FIELD_CHARS } from "./format.ts";
import type { CardChange } from "./types.ts";

/** How the tools of common servers name the two sides of a replacement. */
const PAIRS = [
  ["oldText", "newText"],
  ["old_text", "new_text"],
  ["old_string", "new_string"],
  ["old_str", "new_str"],
  ["before", "after"],
  ["old", "new"],
] as const;
/** More lines than a person reads; the rest is counted. */
const MOST_LINES = 2_000;

export function asText(value: Json | undefined): string {
  if (value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

export function diffOf(before: Json | undefined, after: Json | undefined): DiffLine[] {
  return shown(diffLines(asText(before), asText(after)));
}

function shown(lines: readonly DiffLine[]): DiffLine[] {
  const most = lines.slice(0, MOST_LINES).map(({ kind, text }) => ({ kind, text: visibleText(text, 2_000) }));
  const rest = lines.length - most.length;
  if (rest > 0) most.push({ kind: "gap", text: `${rest.toLocaleString("en")} more lines` });
  return most;
}

/** The two sides of replacements that the arguments themselves spell out; null where they do not. */
export function replacements(value: Json): DiffLine[] | null {
  const list = Array.isArray(value) ? value : [value];
  const found: DiffLine[] = [];
  for (const [i, item] of list.entries()) {
    if (!isJsonObject(item)) return null;
    const pair = PAIRS.find(([a, b]) => typeof item[a] === "string" && typeof item[b] === "string");
    if (pair === undefined) return null;
    if (i > 0) found.push({ kind: "gap", text: "" });
    found.push(...diffLines(item[pair[0]] as string, item[pair[1]] as string));
  }
  return list.length === 0 ? null : shown(found);
}

/** What was read at the place that an argument is put to: the same place of what was read, or all of it as text. */
export function counterpart(before: Json, path: string): Json | undefined {
  const keys = tryPath(path)?.keys ?? [];
  if (typeof before === "string") return before;
  const same = readKeys(before, keys);
  if (same !== undefined) return same;
  if (!isJsonObject(before)) return undefined;
  const texts = Object.values(before).filter((value) => typeof value === "string");
  return texts.length === 1 ? texts[0] : undefined;
}

/** Every argument that differs from what was read under its name. */
export function changesOf(before: Json | undefined, args: Json | undefined): CardChange[] {
  if (before === undefined || !isJsonObject(args ?? null)) return [];
  const given = args as { [name: string]: Json };
  return Object.keys(given).flatMap((name) => {
    const was = isJsonObject(before) && Object.hasOwn(before, name) ? before[name] : undefined;
    if (was === undefined || asText(was) === asText(given[name])) return [];
    return [change(name, was, given[name]!)];
  });
}

export function change(label: string, before: Json, after: Json): CardChange {
  return {
    label: visibleText(label, 200),
    before: visibleText(asText(before), FIELD_CHARS),
    after: visibleText(asText(after), FIELD_CHARS),
    lines: diffOf(before, after),
  };
}
