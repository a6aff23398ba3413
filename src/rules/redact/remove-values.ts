/**
 * Removes echoes of the call's values from hostile free text. Echoes in an error are:
 *
 * - a text of four or more characters at any position, in any case and spacing, also in JSON, URL or HTML encoding;
 * - a shorter text, and any spelling of a number, only as a separate word or number: removing parts of
 *   longer words would make the error unreadable;
 * - the beginning and the end, from twelve characters on, of a partial copy of a text with sixteen or more.
 *
 * These stay: `true`, `false`, `null`, short ASCII punctuation, and values that consist of common words (`read`, `the
 * file`). They reveal nothing about a person, and an error is unreadable without them. An error is removed entirely if
 * the call has more values than can be searched.
 */
import type { JsonValue } from "../../kernel/json/json.ts";
import { memberNames } from "../../kernel/json/known-large.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { isCommonWords } from "./message-words.ts";
import { foldText } from "./text-variants.ts";
import { MIN_SUBSTRING_LENGTH, type TextRange, ValueLeakIndex } from "./value-leak-index.ts";

const MASK = "[argument]";
export const WITHHELD_TEXT = "[error removed: the call has too many values to search for]";
const MAX_VALUES = 20_000;

/** Removes every value of the call from the text. Text beyond the stored length is not scanned. */
export function removeCallValues(text: string, ...values: (JsonValue | undefined)[]): string {
  const found = new Set<string>();
  for (const value of values) if (value !== undefined) collect(value, found);
  if (found.size > MAX_VALUES) return WITHHELD_TEXT;
  const read = text.slice(0, SERVICE_LIMITS.error_read_chars);
  const index = new ValueLeakIndex(read, read.length === SERVICE_LIMITS.error_read_chars);
  const ranges: TextRange[] = [];
  for (const value of found) for (const range of echoesOf(value, index)) ranges.push(range);
  return masked(read, ranges);
}

/** Treats texts and numbers alike, since an echo shows no difference. */
function collect(value: JsonValue, into: Set<string>): void {
  if (into.size > MAX_VALUES) return;
  if (typeof value === "string" || typeof value === "number") into.add(String(value));
  else if (Array.isArray(value)) for (const member of value) collect(member, into);
  else if (value !== null && typeof value === "object")
    for (const name of memberNames(value)) collect(value[name]!, into);
}

const NUMBER = /^[+-]?\d+(?:\.\d+)?$/;

function* echoesOf(value: string, index: ValueLeakIndex): Generator<TextRange> {
  if (isCommonWords(value)) return;
  if (NUMBER.test(value)) yield* index.numberAt(value);
  for (const spelling of spellings(value)) {
    const echo = foldText(spelling);
    if (echo.length >= MIN_SUBSTRING_LENGTH || /[\p{L}\p{N}]|[^\p{ASCII}]/u.test(echo))
      yield* index.textAt(echo);
  }
}

/** Composed and decomposed forms, and a form with capitals for letters that have no lower case. */
function spellings(value: string): string[] {
  if (/^\p{ASCII}*$/u.test(value)) return [value];
  return [value, value.normalize("NFC"), value.normalize("NFD"), value.toUpperCase()];
}

/** Masks the ranges; adjacent and overlapping ones become one mask. */
function masked(text: string, ranges: TextRange[]): string {
  let out = "";
  let done = -1;
  for (const [from, to] of ranges.sort((a, b) => a[0] - b[0])) {
    if (from > done) out += text.slice(Math.max(done, 0), from) + MASK;
    done = Math.max(done, to);
  }
  return out + text.slice(Math.max(done, 0));
}
