/**
 * Free text is hostile: it may echo the values of the call. Which echoes are taken out of an error:
 *
 * - a text of four characters or more wherever it stands, in any case and spacing, also in JSON, URL or HTML;
 * - a shorter one, and every number however it is written, where it stands alone: as part of a longer word or
 *   number it is no echo, and taking it out there would leave nothing readable;
 * - of a text of sixteen or more that is repeated in part, its beginning and its end from twelve characters on.
 *
 * Left alone are `true`, `false`, `null`, short texts of ASCII punctuation, and values made of nothing but common words
 * (`read`, `the file`), which say nothing about a person: without them an error's own sentence could not be read.
 * Of an error beside more values than can be looked for, nothing is kept.
 */
import type { Json } from "../kernel/json.ts";
import { LIMITS } from "../kernel/limits.ts";
import { ANYWHERE, EchoIndex, type Range } from "./echo-index.ts";
import { isCommonWords } from "./message-words.ts";
import { fold } from "./text-readings.ts";

const MASK = "[argument]";
export const WITHHELD = "[an error beside too many values to look for in it]";
const MOST_VALUES = 20_000;

/** Takes every value of the call that the text repeats out of it; what is too long to be kept is not read. */
export function withoutValues(text: string, ...values: (Json | undefined)[]): string {
  const found = new Set<string>();
  for (const value of values) if (value !== undefined) collect(value, found);
  if (found.size > MOST_VALUES) return WITHHELD;
  const read = text.slice(0, LIMITS.error_read_chars);
  const index = new EchoIndex(read, read.length === LIMITS.error_read_chars);
  const ranges: Range[] = [];
  for (const value of found) for (const range of echoesOf(value, index)) ranges.push(range);
  return masked(read, ranges);
}

/** Texts and numbers alike: an echo shows no difference. */
function collect(value: Json, into: Set<string>): void {
  if (into.size > MOST_VALUES) return;
  if (typeof value === "string" || typeof value === "number") into.add(String(value));
  else if (Array.isArray(value)) for (const member of value) collect(member, into);
  else if (value !== null && typeof value === "object")
    for (const member of Object.values(value)) collect(member, into);
}

const NUMBER = /^[+-]?\d+(?:\.\d+)?$/;

function* echoesOf(value: string, index: EchoIndex): Generator<Range> {
  if (isCommonWords(value)) return;
  if (NUMBER.test(value)) yield* index.numberAt(value);
  for (const spelling of spellings(value)) {
    const echo = fold(spelling);
    if (echo.length >= ANYWHERE || /[\p{L}\p{N}]|[^\p{ASCII}]/u.test(echo)) yield* index.textAt(echo);
  }
}

/** The same letters composed and decomposed, and with what has no small letter of its own in capitals. */
function spellings(value: string): string[] {
  if (/^\p{ASCII}*$/u.test(value)) return [value];
  return [value, value.normalize("NFC"), value.normalize("NFD"), value.toUpperCase()];
}

/** Echoes that touch or overlap are one. */
function masked(text: string, ranges: Range[]): string {
  let out = "";
  let done = -1;
  for (const [from, to] of ranges.sort((a, b) => a[0] - b[0])) {
    if (from > done) out += text.slice(Math.max(done, 0), from) + MASK;
    done = Math.max(done, to);
  }
  return out + text.slice(Math.max(done, 0));
}
