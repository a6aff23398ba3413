/**
 * Escapes untrusted text for review: nothing in it can move, hide or break the text around it. Invisible characters
 * appear as their code points, so that the reader notices them.
 */
import type { JsonValue } from "../json/json.ts";
import { clipText } from "./phrases.ts";

const LONE_SURROGATE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
/**
 * Controls, separators that break a line, spaces other than the plain one, and characters without a shape, the blank
 * Braille pattern included. The emoji selector is left alone behind a sign that has an emoji form; elsewhere it changes
 * a text that looks the same. Marks beyond the fourth on one letter are shown as code points, because they would cover the
 * lines around them.
 */
const UNSEEN =
  /[\p{Cc}\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000\u2028\u2029\u2800\ufff9-\ufffb\p{Default_Ignorable_Code_Point}\p{Bidi_Control}](?<!\p{Extended_Pictographic}\ufe0f)(?<!\ufe0f(?=\u20e3))|(?<=[\p{Mn}\p{Me}]{4})[\p{Mn}\p{Me}]/gu;
/** The same without the line breaks and tabs that a text keeps. */
const UNSEEN_IN_TEXT = new RegExp(`(?![\\n\\t])(?:${UNSEEN.source})`, "gu");
const NAMED: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** Escapes a text into one line of at most `max` characters. */
export function visibleLine(text: string, max: number): string {
  return clipText(escaped(beginning(text, max), UNSEEN), max);
}

/** Escapes a whole text, and keeps its line breaks and tabs. */
export function visibleText(text: string): string {
  return escaped(text.replaceAll("\r\n", "\n"), UNSEEN_IN_TEXT);
}

/** Escapes a whole text into one line. */
export function visibleOneLine(text: string): string {
  return escaped(text, UNSEEN);
}

/** JSON for an editor: invisible characters become JSON escapes, so that parsing it returns the same value. */
export function visibleJson(value: JsonValue): string {
  return JSON.stringify(value, null, 2).replace(UNSEEN, (c) =>
    c === "\n"
      ? c
      : c
          .split("")
          .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
          .join(""),
  );
}

/** Escaping never shortens a text, so no more than this can appear. */
function beginning(text: string, max: number): string {
  return text.length <= max ? text : text.slice(0, max + 1);
}

const PLAIN = /^[\x20-\x7e]*$/;
const PLAIN_TEXT = /^[\n\t\x20-\x7e]*$/;

function escaped(text: string, unseen: RegExp): string {
  if ((unseen === UNSEEN ? PLAIN : PLAIN_TEXT).test(text)) return text;
  return text.replace(LONE_SURROGATE, "\ufffd").replace(unseen, (c) => NAMED[c] ?? numbered(c));
}

function numbered(c: string): string {
  const hex = c.codePointAt(0)!.toString(16);
  return hex.length > 4 ? `\\u{${hex}}` : `\\u${hex.padStart(4, "0")}`;
}
