/** Replacements that the arguments spell out: an old text and the new one, and the members that belong to neither. */
import { type DiffLine, diffLines } from "../../kernel/diff.ts";
import { isJsonObject, type Json, type JsonObject } from "../../kernel/json.ts";
import { CARD_LIMITS } from "./limits.ts";

/** How the tools of common servers name the two sides of a replacement. */
const PAIRS = [
  ["oldText", "newText"],
  ["old_text", "new_text"],
  ["old_string", "new_string"],
  ["old_str", "new_str"],
  ["before", "after"],
  ["old", "new"],
] as const;
const SIDES: ReadonlySet<string> = new Set(PAIRS.flat());

export type TextPair = readonly [old: string, put: string];

/** A member of a replacement that is neither its old nor its new text. */
export interface UncoveredMember {
  /** Below the value that holds the replacements. */
  keys: (string | number)[];
  value: Json;
}

export interface GivenEdits {
  pairs: TextPair[];
  /** In the order of the arguments. A diff of the pairs says nothing about them. */
  uncovered: UncoveredMember[];
}

/**
 * Reads a replacement or a list of them. Null where there is none. `unclear` where one names a side twice, misses a side
 * or has a side that is not a text: which text the tool replaces is then not known, and no diff can show it.
 */
export function readEdits(value: Json): GivenEdits | "unclear" | null {
  const items = Array.isArray(value) ? value : [value];
  const edits: GivenEdits = { pairs: [], uncovered: [] };
  let readable = items.length > 0;
  let named = false;
  for (const [i, item] of items.entries()) {
    const sides = isJsonObject(item) ? Object.keys(item).filter((name) => SIDES.has(name)) : [];
    named ||= sides.length > 1;
    const pair = sides.length === 2 ? pairOf(item as JsonObject) : undefined;
    if (pair === undefined) {
      readable = false;
      continue;
    }
    edits.pairs.push(pair);
    for (const name of Object.keys(item as JsonObject))
      if (!SIDES.has(name))
        edits.uncovered.push({
          keys: Array.isArray(value) ? [i, name] : [name],
          value: (item as JsonObject)[name]!,
        });
  }
  if (readable) return edits;
  return named ? "unclear" : null;
}

function pairOf(item: JsonObject): TextPair | undefined {
  const names = PAIRS.find(([a, b]) => typeof item[a] === "string" && typeof item[b] === "string");
  return names && [item[names[0]] as string, item[names[1]] as string];
}

/**
 * The text with every replacement made in it. Null where an old text is not there exactly once: a tool can then replace
 * another place, all of them, or none.
 */
export function editedText(text: string, pairs: readonly TextPair[]): string | null {
  if (pairs.length * text.length > CARD_LIMITS.edited_chars) return null;
  let after = text;
  for (const [old, put] of pairs) {
    const at = old === "" ? -1 : after.indexOf(old);
    if (at < 0 || after.indexOf(old, at + 1) >= 0) return null;
    after = after.slice(0, at) + put + after.slice(at + old.length);
  }
  return after;
}

/** The diff of each pair, one after the other. */
export function pairLines(pairs: readonly TextPair[]): DiffLine[] {
  const gap: DiffLine = { kind: "gap", text: "" };
  return pairs.flatMap(([old, put], i) => [...(i > 0 ? [gap] : []), ...diffLines(old, put)]);
}
