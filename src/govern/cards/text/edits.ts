/** Text replacements in arguments: pairs of an old and a new text, and the members that are neither. */
import { isJsonObject, type JsonObject, type JsonValue } from "../../../kernel/json/json.ts";
import { type DiffLine, diffLines } from "../../../kernel/text/diff.ts";
import { CARD_LIMITS } from "./limits.ts";

/** Argument names that common MCP servers use for the two sides of a replacement. */
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
  /** Path below the value that holds the replacements. */
  keys: (string | number)[];
  value: JsonValue;
}

export interface GivenEdits {
  pairs: TextPair[];
  /** In argument order. The diff of the pairs does not cover them. */
  uncovered: UncoveredMember[];
}

/**
 * Reads a replacement or a list of replacements. Returns null if there are none. Returns `unclear` if one names a side
 * twice, lacks a side, or has a side that is not a string: the card cannot know which text the tool replaces.
 */
export function readEdits(value: JsonValue): GivenEdits | "unclear" | null {
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
 * Applies every replacement to the text. Returns null unless each old text occurs exactly once, because tools differ in
 * which occurrence they replace.
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

/** Concatenates the diffs of all pairs. */
export function pairLines(pairs: readonly TextPair[]): DiffLine[] {
  const gap: DiffLine = { kind: "gap", text: "" };
  return pairs.flatMap(([old, put], i) => {
    const end = changedEnd(old, put);
    const lines = diffLines(old, put);
    return [
      ...(i > 0 ? [gap] : []),
      ...lines,
      ...(end === null ? [] : [{ kind: "gap", text: end } as const]),
    ];
  });
}

/** What a line diff does not show: a change of the last line break. Null without one. */
export function changedEnd(old: string, put: string): string | null {
  if (put === "\n" && old !== "\n") return "the new text is a line break alone";
  const [was, is] = [old, put].map((text) => text === "" || text.endsWith("\n"));
  if (was === is) return null;
  return is ? "the last line now ends with a line break" : "the last line no longer ends with a line break";
}
