/**
 * Text from outside, shown so that it can be judged: nothing in it moves, hides or breaks what stands
 * around it. What has no shape of its own is shown by its number, so that the reader sees that it is there.
 */

import type { Json } from "./json.ts";
import { clip } from "./words.ts";

const LONE_SURROGATE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
/** Controls, separators that break a line, and characters without a shape; the emoji selector is left alone. */
const UNSEEN =
  /(?!\ufe0f)[\p{Cc}\u2028\u2029\ufff9-\ufffb\p{Default_Ignorable_Code_Point}\p{Bidi_Control}]/gu;
const NAMED: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** One line, cut to a length. */
export function visibleLine(text: string, max: number): string {
  return clip(escaped(beginning(text, max), ""), max);
}

/** Whole; lines and tabs stay as they are. */
export function visibleWhole(text: string): string {
  return escaped(text.replaceAll("\r\n", "\n"), "\n\t");
}

/** Whole, in one line. */
export function visibleWholeLine(text: string): string {
  return escaped(text, "");
}

/** JSON to be edited: what has no shape is written in JSON's own escapes, and so is read back as it was. */
export function visibleJson(value: Json): string {
  return JSON.stringify(value, null, 2).replace(UNSEEN, (c) =>
    c === "\n"
      ? c
      : c
          .split("")
          .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
          .join(""),
  );
}

/** Escaping only makes longer, so no more than this can be shown. */
function beginning(text: string, max: number): string {
  return text.length <= max ? text : text.slice(0, max + 1);
}

function escaped(text: string, except: string): string {
  return text
    .replace(LONE_SURROGATE, "\ufffd")
    .replace(UNSEEN, (c) => (except.includes(c) ? c : (NAMED[c] ?? numbered(c))));
}

function numbered(c: string): string {
  const hex = c.codePointAt(0)!.toString(16);
  return hex.length > 4 ? `\\u{${hex}}` : `\\u${hex.padStart(4, "0")}`;
}
