/**
 * What a text might echo, made ready once: its pieces that stand alone, its numbers, and its runs of four
 * characters, over all of its readings. Asking for a value costs a look-up, however many values there are.
 */
import { readings, type TextReading } from "./text-readings.ts";

/** Of the original text. */
export type Range = readonly [from: number, to: number];

/** A text of this length is an echo wherever it stands; a shorter one must stand alone. */
export const ANYWHERE = 4;
/** A text of `from` characters or more is also looked for in parts, at its two ends. */
const PARTLY = { from: 16, at_least: 12 };

export class EchoIndex {
  private readonly alone = new Map<string, Range[]>();
  private readonly numbers = new Map<string, Range[]>();
  /** Which readings hold a run of four characters. */
  private readonly runs = new Map<string, TextReading[]>();
  /** What the readings end with, where the text was cut and may end in the middle of a value. */
  private readonly cut = new Map<string, Range[]>();

  constructor(text: string, is_cut: boolean) {
    for (const reading of readings(text)) {
      this.addPieces(reading);
      this.addNumbers(reading);
      this.addRuns(reading);
      if (is_cut) this.addEnd(reading);
    }
  }

  private addPieces(reading: TextReading): void {
    const { text } = reading;
    const kinds = text.split("").map(kindOf);
    for (let from = 0; from < text.length; from++) {
      if (goesOn(text, kinds, from, -1)) continue;
      for (let to = from + 1; to < Math.min(from + ANYWHERE, text.length + 1); to++) {
        if (!goesOn(text, kinds, to - 1, +1))
          add(this.alone, text.slice(from, to), rangeIn(reading, from, to));
      }
    }
  }

  /** Whole numbers and fractions; what has more dots or commas is an address, a version or a date. */
  private addNumbers(reading: TextReading): void {
    for (const { 0: found, index } of reading.text.matchAll(/\d+(?:[.,]\d+)*/g)) {
      const number = canonicalNumber(found);
      if (number !== null) add(this.numbers, number, rangeIn(reading, index, index + found.length));
    }
  }

  private addRuns(reading: TextReading): void {
    const { text } = reading;
    for (let i = 0; i + ANYWHERE <= text.length; i++) {
      const run = text.slice(i, i + ANYWHERE);
      const holders = this.runs.get(run);
      if (holders === undefined) this.runs.set(run, [reading]);
      else if (holders.at(-1) !== reading) holders.push(reading);
    }
  }

  private addEnd(reading: TextReading): void {
    const { length } = reading.text;
    for (let from = Math.max(0, length - PARTLY.at_least + 1); from < length; from++)
      add(this.cut, reading.text.slice(from), rangeIn(reading, from, length));
  }

  /** Where a number stands, however it is written; its sign is not looked at. */
  numberAt(written: string): readonly Range[] {
    const number = canonicalNumber(written.replace(/^[+-]/, ""));
    return (number === null ? undefined : this.numbers.get(number)) ?? [];
  }

  /** Where a folded text stands. */
  textAt(echo: string): Range[] {
    if (echo.length < ANYWHERE) return this.alone.get(echo) ?? [];
    const found: Range[] = [];
    const partly = echo.length >= PARTLY.from;
    const begin = partly ? echo.slice(0, PARTLY.at_least) : echo;
    for (const reading of this.runs.get(echo.slice(0, ANYWHERE)) ?? [])
      found.push(...beginnings(reading, echo, begin));
    if (partly) {
      const end = echo.slice(-PARTLY.at_least);
      for (const reading of this.runs.get(end.slice(0, ANYWHERE)) ?? [])
        found.push(...ends(reading, echo, end));
    }
    if (this.cut.size > 0) found.push(...this.begunAtEnd(echo));
    return found;
  }

  private begunAtEnd(echo: string): readonly Range[] {
    for (let length = Math.min(echo.length, PARTLY.at_least) - 1; length > 0; length--) {
      const found = this.cut.get(echo.slice(0, length));
      if (found !== undefined) return found;
    }
    return [];
  }
}

function add(map: Map<string, Range[]>, key: string, range: Range): void {
  const known = map.get(key);
  if (known === undefined) map.set(key, [range]);
  else known.push(range);
}

function rangeIn({ at }: TextReading, from: number, to: number): Range {
  return [at[from]!, at[to]!];
}

/** Goes on behind what it found, so that repetitions cost no more than the text is long. */
function* beginnings(reading: TextReading, echo: string, begin: string): Generator<Range> {
  const { text } = reading;
  for (let from = text.indexOf(begin), to = 0; from >= 0; from = text.indexOf(begin, to)) {
    to = from + sharedStart(text.slice(from), echo);
    yield rangeIn(reading, from, to);
  }
}

/** The same from behind. */
function* ends(reading: TextReading, echo: string, end: string): Generator<Range> {
  const { text } = reading;
  for (let at = text.lastIndexOf(end); at >= 0; ) {
    const to = at + end.length;
    const from = to - sharedEnd(text.slice(0, to), echo);
    yield rangeIn(reading, from, to);
    if (from < end.length) return;
    at = text.lastIndexOf(end, from - end.length);
  }
}

/** Compared in strides, which the engine does at once. */
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

/** Without zeros that say nothing: 007, 7.0 and 7,00 are 7. Null where it is no number. */
function canonicalNumber(written: string): string | null {
  const [whole, fraction = "", ...more] = written.split(/[.,]/);
  if (more.length > 0 || !/^\d+$/.test(whole!) || !/^\d*$/.test(fraction)) return null;
  const decimals = fraction.replace(/0+$/, "");
  const digits = whole!.replace(/^0+(?=\d)/, "");
  return decimals === "" ? digits : `${digits}.${decimals}`;
}

type Kind = "digit" | "letter" | "";

/** Whether a piece that ends here is only part of a longer word or number. */
function goesOn(text: string, kinds: readonly Kind[], edge: number, step: 1 | -1): boolean {
  const kind = kinds[edge];
  if (kind === "") return false;
  if (kinds[edge + step] === kind) return true;
  const next = text[edge + step];
  return kind === "digit" && (next === "." || next === ",") && kinds[edge + 2 * step] === "digit";
}

/** Scripts that put no space between words have nothing that a word could go on with. */
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
