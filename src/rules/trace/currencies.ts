/** Names and signs of currencies before or after a number. */
import { classAt, IS_LETTER } from "./text-codes.ts";

const SIGNS = [..."$€£¥₹"];
const NAMES =
  "usd eur gbp chf jpy cny inr cad aud sek nok dkk pln dollar dollars euro euros pound pounds".split(" ");

type Codes = readonly number[];
const CURRENCIES = [...SIGNS, ...NAMES].map((name): Codes => [...name].map((char) => char.charCodeAt(0)));

/** Currencies by one of their characters. `groups` has the position of each character's list in `lists`. */
class CurrencyIndex {
  private readonly groups = new Uint8Array(65_536);
  private readonly lists: Codes[][] = [[]];

  constructor(charOf: (codes: Codes) => number) {
    for (const codes of CURRENCIES) {
      const char = charOf(codes);
      if (this.groups[char] === 0) this.groups[char] = this.lists.push([]) - 1;
      this.listOf(char).push(codes);
    }
  }

  has(char: number): boolean {
    return this.groups[char] !== 0;
  }

  listOf(char: number): Codes[] {
    return this.lists[this.groups[char]!]!;
  }
}

const starts = new CurrencyIndex((codes) => codes[0]!);
const ends = new CurrencyIndex((codes) => codes.at(-1)!);

/** Whether a currency ends before this place. */
export function endsWithCurrency(codes: Uint16Array, to: number): boolean {
  if (to < 1) return false;
  const last = codes[to - 1]!;
  if (!ends.has(last)) return false;
  for (const name of ends.listOf(last)) if (isAt(name, codes, to - name.length)) return true;
  return false;
}

/** The end of the currency that starts here, without a letter after it, or -1. */
export function endOfCurrency(codes: Uint16Array, from: number): number {
  const first = codes[from]!;
  if (!starts.has(first)) return -1;
  for (const name of starts.listOf(first)) {
    const to = from + name.length;
    if (isAt(name, codes, from) && (classAt(codes, to) & IS_LETTER) === 0) return to;
  }
  return -1;
}

function isAt(name: Codes, codes: Uint16Array, from: number): boolean {
  if (from < 0) return false;
  for (let i = 0; i < name.length; i++) if (codes[from + i] !== name[i]) return false;
  return true;
}
