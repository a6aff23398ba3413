/** What a call would change: what was there, what it puts there, line by line. */

import { canonical } from "../../kernel/canonical.ts";
import { type DiffLine, diffLines } from "../../kernel/diff.ts";
import { isJsonObject, type Json } from "../../kernel/json.ts";
import { readKeys, tryTemplatePath } from "../../kernel/paths.ts";
import { visibleText } from "../../kernel/visible.ts";
import { isAbsent } from "../manifest/absent.ts";
import type { Before, Manifest } from "../manifest/types.ts";
import { FIELD_CHARS, jsonLines } from "./format.ts";
import { namedPlace, soleTextPlace } from "./place.ts";
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
/** Arguments that are shown, and compared, one by one; the others are shown together. */
export const MOST_ARGUMENTS = 200;
/** Characters that edits of one text may make a search go through: each edit looks through all of it. */
const MOST_EDITED = 20_000_000;
/** More lines than a person reads; the rest is counted. */
const MOST_LINES = 2_000;

/** An answer that is one text and nothing else, as that text: its lines can be compared. */
export function plainText(value: Json): Json {
  const place = isJsonObject(value) && Object.keys(value).length === 1 ? soleTextPlace(value) : undefined;
  return place === undefined ? value : readKeys(value, place)!;
}

export function asText(value: Json | undefined): string {
  if (value === undefined) return "";
  return typeof value === "string" ? value : jsonLines(value);
}

/** Whether a value is written on more than one line. */
export function hasLines(value: Json): boolean {
  if (typeof value === "string") return value.includes("\n");
  return value !== null && typeof value === "object" && Object.keys(value).length > 0;
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
  const pairs = pairsIn(value);
  if (pairs === null) return null;
  if (pairs.length === 1) return shown(diffLines(...pairs[0]!));
  const gap: DiffLine = { kind: "gap", text: "" };
  return shown(pairs.flatMap(([old, put], i) => [...(i > 0 ? [gap] : []), ...diffLines(old, put)]));
}

function pairsIn(value: Json): [string, string][] | null {
  const pairs: [string, string][] = [];
  for (const item of Array.isArray(value) ? value : [value]) {
    if (!isJsonObject(item)) return null;
    const pair = PAIRS.find(([a, b]) => typeof item[a] === "string" && typeof item[b] === "string");
    if (pair === undefined) return null;
    pairs.push([item[pair[0]] as string, item[pair[1]] as string]);
  }
  return pairs.length === 0 ? null : pairs;
}

/** The text with every replacement that the arguments spell out made in it; null where one of them does not fit. */
function edited(text: string, value: Json): string | null {
  const pairs = pairsIn(value);
  if ((pairs?.length ?? 0) * text.length > MOST_EDITED) return null;
  let after: string | null = pairs === null ? null : text;
  for (const [old, put] of pairs ?? []) {
    if (after?.includes(old) !== true) return null;
    after = after.replace(old, () => put);
  }
  return after;
}

/** Every argument that puts something else in the place of what was read, and every edit of a text that was. */
export function changesOf(
  before: Json | undefined,
  args: Json | undefined,
  manifest: Pick<Manifest, "before" | "compensation"> | null,
): CardChange[] {
  if (before === undefined || args === undefined || !isJsonObject(args)) return [];
  const nothing = manifest?.before !== undefined && isAbsent(manifest.before, before);
  return Object.keys(args)
    .slice(0, MOST_ARGUMENTS)
    .flatMap((name) => {
      const after = args[name]!;
      if (nothing) return isPutBack(name, manifest) ? [change(name, "", after)] : [];
      const place = namedPlace(before, manifest, [name]);
      const was = place === undefined ? undefined : readKeys(before, place);
      if (was !== undefined) return asText(was) === asText(after) ? [] : [change(name, was, after)];
      return editOf(before, after, name);
    });
}

/** What an undo puts in the place of what is there now, as one change: of the one text in it, where nothing else differs. */
export function restoredBy(
  is: Json | undefined,
  was: Json | undefined,
  manifest: Pick<Manifest, "before"> | null,
): CardChange[] {
  if (is === undefined || was === undefined) return [];
  const before = manifest?.before;
  const gone = (read: Json): boolean => before !== undefined && isAbsent(before, read);
  const alike = gone(is) || gone(was) || besideText(is, before) === besideText(was, before);
  const shown = (read: Json): Json => {
    if (gone(read)) return "";
    const place = alike ? soleTextPlace(read) : undefined;
    return place === undefined ? read : readKeys(read, place)!;
  };
  return [change("what is there", shown(is), shown(was))];
}

/** What an answer says beside its one text, but for what changes by itself. */
function besideText(read: Json, before: Before | undefined): string {
  const [text] = soleTextPlace(read) ?? [];
  if (!isJsonObject(read)) return "";
  const names = Object.keys(read).filter(
    (name) => name !== text && !before?.ignore?.includes(`$before.${name}`),
  );
  return canonical(names.sort().map((name) => [name, read[name]!]));
}

function editOf(before: Json, value: Json, name: string): CardChange[] {
  const place = soleTextPlace(before);
  const text = place === undefined ? undefined : readKeys(before, place);
  const after = typeof text === "string" ? edited(text, value) : null;
  if (place === undefined || after === null) return [];
  return [change(String(place.at(-1) ?? name), text!, after)];
}

/** Whether the undo gives this argument what was read: then it is what the call puts where nothing is. */
function isPutBack(name: string, manifest: Pick<Manifest, "compensation"> | null): boolean {
  const template = manifest?.compensation?.args[name];
  return typeof template === "string" && tryTemplatePath(template)?.root === "before";
}

export function change(label: string, before: Json, after: Json): CardChange {
  return {
    label: visibleText(label, 200),
    before: visibleText(asText(before), FIELD_CHARS),
    after: visibleText(asText(after), FIELD_CHARS),
    lines: diffOf(before, after),
  };
}
