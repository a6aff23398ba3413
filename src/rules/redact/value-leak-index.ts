/**
 * Index of the values that a text can contain: its short words, its numbers, and its four-character substrings, over
 * all variants of the text. Looking up a value takes constant time, however many values there are.
 */
import { type TextVariant, textVariants } from "./text-variants.ts";

/** Range in the original text. */
export type TextRange = readonly [from: number, to: number];

/** Minimum length of a text that counts as an echo anywhere; shorter texts must be separate words. */
export const MIN_SUBSTRING_LENGTH = 4;
/** Texts of `from` or more characters also match partially, by `at_least` characters at either end. */
const PARTLY = { from: 16, at_least: 12 };

export class ValueLeakIndex {
  private readonly alone = new Map<string, TextRange[]>();
  private readonly numbers = new Map<string, TextRange[]>();
  /** Text variants by four-character substring. */
  private readonly runs = new Map<string, TextVariant[]>();
  /** Endings of a truncated text, which can end within a value. */
  private readonly cut = new Map<string, TextRange[]>();

  constructor(text: string, is_cut: boolean) {
    for (const reading of textVariants(text)) {
      this.addPieces(reading);
      this.addNumbers(reading);
      this.addRuns(reading);
      if (is_cut) this.addEnd(reading);
    }
  }

  private addPieces(reading: TextVariant): void {
    const { text } = reading;
    const kinds = text.split("").map(kindOf);
    for (let from = 0; from < text.length; from++) {
      if (goesOn(text, kinds, from, -1)) continue;
      for (let to = from + 1; to < Math.min(from + MIN_SUBSTRING_LENGTH, text.length + 1); to++) {
        if (!goesOn(text, kinds, to - 1, +1))
          add(this.alone, text.slice(from, to), rangeIn(reading, from, to));
      }
    }
  }

  /** Integers and fractions. Matches with more dots or commas are addresses, versions or dates. */
  private addNumbers(reading: TextVariant): void {
    for (const { 0: found, index } of reading.text.matchAll(/\d+(?:[.,]\d+)*/g)) {
      const number = canonicalNumber(found);
      if (number !== null) add(this.numbers, number, rangeIn(reading, index, index + found.length));
    }
  }

  private addRuns(reading: TextVariant): void {
    const { text } = reading;
    for (let i = 0; i + MIN_SUBSTRING_LENGTH <= text.length; i++) {
      const run = text.slice(i, i + MIN_SUBSTRING_LENGTH);
      const holders = this.runs.get(run);
      if (holders === undefined) this.runs.set(run, [reading]);
      else if (holders.at(-1) !== reading) holders.push(reading);
    }
  }

  private addEnd(reading: TextVariant): void {
    const { length } = reading.text;
    for (let from = Math.max(0, length - PARTLY.at_least + 1); from < length; from++)
      add(this.cut, reading.text.slice(from), rangeIn(reading, from, length));
  }

  /** Positions of a number in any spelling, regardless of its sign. */
  numberAt(written: string): readonly TextRange[] {
    const number = canonicalNumber(written.replace(/^[+-]/, ""));
    return (number === null ? undefined : this.numbers.get(number)) ?? [];
  }

  /** Positions of a folded text. */
  textAt(echo: string): TextRange[] {
    if (echo.length < MIN_SUBSTRING_LENGTH) return this.alone.get(echo) ?? [];
    const found: TextRange[] = [];
    const partly = echo.length >= PARTLY.from;
    const begin = partly ? echo.slice(0, PARTLY.at_least) : echo;
    for (const reading of this.runs.get(echo.slice(0, MIN_SUBSTRING_LENGTH)) ?? [])
      found.push(...beginnings(reading, echo, begin));
    if (partly) {
      const end = echo.slice(-PARTLY.at_least);
      for (const reading of this.runs.get(end.slice(0, MIN_SUBSTRING_LENGTH)) ?? [])
        found.push(...ends(reading, echo, end));
    }
    if (this.cut.size > 0) found.push(...this.begunAtEnd(echo));
    return found;
  }

  private begunAtEnd(echo: string): readonly TextRange[] {
    for (let length = Math.min(echo.length, PARTLY.at_least) - 1; length > 0; length--) {
      const found = this.cut.get(echo.slice(0, length));
      if (found !== undefined) return found;
    }
    return [];
  }
}

function add(map: Map<string, TextRange[]>, key: string, range: TextRange): void {
  const known = map.get(key);
  if (known === undefined) map.set(key, [range]);
  else known.push(range);
}

function rangeIn({ at }: TextVariant, from: number, to: number): TextRange {
  return [at[from]!, at[to]!];
}

/** Resumes after each match, so that the cost stays linear in the text. */
function* beginnings(reading: TextVariant, echo: string, begin: string): Generator<TextRange> {
  const { text } = reading;
  for (let from = text.indexOf(begin), to = 0; from >= 0; from = text.indexOf(begin, to)) {
    to = from + sharedStart(text.slice(from), echo);
    yield rangeIn(reading, from, to);
  }
}

/** Like `beginnings`, from the end. */
function* ends(reading: TextVariant, echo: string, end: string): Generator<TextRange> {
  const { text } = reading;
  for (let at = text.lastIndexOf(end); at >= 0; ) {
    const to = at + end.length;
    const from = to - sharedEnd(text.slice(0, to), echo);
    yield rangeIn(reading, from, to);
    if (from < end.length) return;
    at = text.lastIndexOf(end, from - end.length);
  }
}

/** Compares in chunks, which the JavaScript engine does in one operation. */
const STRIDE = 64;

function sharedStart(a: string, b: string): number {
  const most = Math.min(a.length, b.length);
  let n = 0;
  while (n + STRIDE <= most && a.slice(n, n + STRIDE) === b.slice(n, n + STRIDE)) n += STRIDE;
  while (n < most && a[n] === b[n]) n++;
  return n;
}

function sharedEnd(a: string, b: string): number {
  const most = Math.min(a.length, b.length);
  const back = (text: string, n: number) => text.slice(text.length - n - STRIDE, text.length - n);
  let n = 0;
  while (n + STRIDE <= most && back(a, n) === back(b, n)) n += STRIDE;
  while (n < most && a[a.length - 1 - n] === b[b.length - 1 - n]) n++;
  return n;
}

/** Removes insignificant zeros: 007, 7.0 and 7,00 are 7. Null if the text is not a number. */
function canonicalNumber(written: string): string | null {
  const [whole, fraction = "", ...more] = written.split(/[.,]/);
  if (more.length > 0 || !/^\d+$/.test(whole!) || !/^\d*$/.test(fraction)) return null;
  const decimals = fraction.replace(/(?<!0)0+$/, "");
  const digits = whole!.replace(/^0+(?=\d)/, "");
  return decimals === "" ? digits : `${digits}.${decimals}`;
}

type Kind = "digit" | "letter" | "";

/** True if a piece with this edge is part of a longer word or number. */
function goesOn(text: string, kinds: readonly Kind[], edge: number, step: 1 | -1): boolean {
  const kind = kinds[edge];
  if (kind === "") return false;
  if (kinds[edge + step] === kind) return true;
  const next = text[edge + step];
  return kind === "digit" && (next === "." || next === ",") && kinds[edge + 2 * step] === "digit";
}

/** In scripts without spaces between words, every position is a word boundary. */
const UNSPACED = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]/u;

function kindOf(character: string): Kind {
  if (character < "\u0080")
    return character >= "0" && character <= "9"
      ? "digit"
      : character >= "a" && character <= "z"
        ? "letter"
        : "";
  if (/\p{N}/u.test(character)) return "digit";
  return /[\p{L}\p{M}]/u.test(character) && !UNSPACED.test(character) ? "letter" : "";
}
