/**
 * Finds the places of values in a text, without a pattern engine and without a text for each value. Every scan reads
 * each character a bounded number of times. The tests hold the patterns and compare.
 */
import { endOfAccount, endOfPhone } from "./account-numbers.ts";
import { endOfCurrency, endsWithCurrency } from "./currencies.ts";
import {
  classAt,
  classBefore,
  flagsOf,
  IS_DIGIT,
  IS_DOT,
  IS_DOTTED,
  IS_HYPHEN,
  IS_LETTER,
  IS_LOCAL_PART,
  IS_NUMBER,
  IS_TOKEN,
  IS_UNDERSCORE,
  IS_WORD,
  isLowSurrogate,
} from "./text-codes.ts";

/** Start and end of each place, one after the other. */
export type TextPlaces = number[];

const AT = 0x40;
const PLUS = 0x2b;
const SPACE = 0x20;
const COMMA = 0x2c;
const POINT = 0x2e;

/** The number of characters, where two units can be one. */
function countChars(codes: Uint16Array, from: number, to: number): number {
  let count = to - from;
  for (let i = from; i < to; i++) if (isLowSurrogate(codes[i]!)) count--;
  return count;
}

/** The end of the run of characters of these classes. */
function endOfRun(codes: Uint16Array, from: number, mask: number): number {
  let at = from;
  while ((classAt(codes, at) & mask) !== 0) at++;
  return at;
}

const MAX_LOCAL_PART = 64;
const MAX_LABEL = 63;
const MAX_LABELS = 8;

export function findEmails(text: string, codes: Uint16Array): TextPlaces {
  const found: TextPlaces = [];
  let end = 0;
  for (let at = text.indexOf("@"); at >= 0; at = text.indexOf("@", at + 1)) {
    const from = startOfLocalPart(codes, at);
    if (from < end || from === at) continue;
    const to = endOfDomain(codes, at + 1);
    if (to < 0) continue;
    found.push(from, to);
    end = to;
  }
  return found;
}

/** The place itself if the name before it is too long. */
function startOfLocalPart(codes: Uint16Array, at: number): number {
  let from = at;
  for (let chars = 0; (classBefore(codes, from) & IS_LOCAL_PART) !== 0; from--) {
    if (!isLowSurrogate(codes[from - 1]!) && ++chars > MAX_LOCAL_PART) return at;
  }
  return from;
}

/** Two to nine labels, or -1. */
function endOfDomain(codes: Uint16Array, from: number): number {
  let end = -1;
  let at = from;
  for (let labels = 0; labels <= MAX_LABELS; labels++) {
    const to = endOfLabel(codes, at);
    if (to === at) break;
    if (labels > 0) end = to;
    if (codes[to] !== POINT) break;
    at = to + 1;
  }
  return end;
}

function endOfLabel(codes: Uint16Array, from: number): number {
  let at = from;
  for (let chars = 0; (classAt(codes, at) & (IS_WORD | IS_HYPHEN)) !== 0; at++)
    if (!isLowSurrogate(codes[at]!) && ++chars > MAX_LABEL) break;
  return at;
}

/** Hosts and file names, since `notes.md` is both. They have a letter after a dot. */
export function findDotted(text: string, codes: Uint16Array): TextPlaces {
  const found: TextPlaces = [];
  let end = 0;
  for (let dot = text.indexOf("."); dot >= 0; dot = text.indexOf(".", dot + 1)) {
    if (dot < end || (classAt(codes, dot + 1) & IS_LETTER) === 0) continue;
    let from = dot;
    while (from > end && (classBefore(codes, from) & IS_DOTTED) !== 0) from--;
    if (from === 0 || codes[from - 1] !== AT) {
      const to = endOfDotted(codes, from);
      if (to >= 0) found.push(from, to);
    }
    // The rest of the run has no other start.
    end = endOfRun(codes, dot, IS_DOTTED);
  }
  return found;
}

const MAX_LAST_LABEL = 24;

/** One to eight labels, and a last one that begins with a letter, or -1. The longest of these counts. */
function endOfDotted(codes: Uint16Array, from: number): number {
  let end = -1;
  let at = from;
  for (let labels = 0; labels <= MAX_LABELS; labels++) {
    const to = endOfRun(codes, at, IS_TOKEN);
    if (labels > 0 && isLastLabel(codes, at, to)) end = to;
    if (to === at || codes[to] !== POINT || countChars(codes, at, to) > MAX_LABEL) break;
    at = to + 1;
  }
  return end;
}

function isLastLabel(codes: Uint16Array, from: number, to: number): boolean {
  if ((classAt(codes, from) & IS_LETTER) === 0 || codes[to] === AT) return false;
  if (to - from > 2 * MAX_LAST_LABEL || countChars(codes, from, to) > MAX_LAST_LABEL) return false;
  for (let i = from; i < to; i++) if ((classAt(codes, i) & IS_UNDERSCORE) !== 0) return false;
  return true;
}

/** Values that contain digits, each list in the order of the text. */
export interface FoundNumbers {
  groups: TextPlaces;
  accounts: TextPlaces;
  /** At least three digits among letters, digits, `_` and `-`. */
  tokens: TextPlaces;
  /** With a checksum, however it is grouped. */
  checked_accounts: TextPlaces;
  /** Phone numbers with dots. */
  phones: TextPlaces;
  addresses: TextPlaces;
  amounts_after: TextPlaces;
  amounts_before: TextPlaces;
}

/** Finds words and numbers. Long texts are read in parts, so that the compiled code also fits the short ones. */
export class WordScan {
  /** Start and end of each word. */
  words: Int32Array;
  word_count = 0;
  readonly found: FoundNumbers = {
    groups: [],
    accounts: [],
    tokens: [],
    checked_accounts: [],
    phones: [],
    addresses: [],
    amounts_after: [],
    amounts_before: [],
  };
  private readonly codes: Uint16Array;
  /** Where the last match of each kind ended: matches of one kind do not overlap. */
  private token_end = 0;
  private groups_end = 0;
  private accounts_end = 0;
  private checked_end = 0;
  private addresses_end = 0;
  private before_end = 0;

  /** `codes` are those of a text, with a 0 after them. */
  constructor(codes: Uint16Array) {
    this.codes = codes;
    // A word and what separates it take two characters or more.
    this.words = wordPlaces(codes.length + 1);
    const length = codes.length - 1;
    for (let at = 0; at < length; ) at = this.readPart(at, Math.min(length, at + PART));
  }

  /** Returns the end of the last word of the part. */
  private readPart(from: number, to: number): number {
    const { codes, words } = this;
    let at = from;
    let count = this.word_count;
    while (at < to) {
      let all = classAt(codes, at);
      if ((all & IS_WORD) === 0) {
        at++;
        continue;
      }
      const start = at;
      for (let next = classAt(codes, ++at); (next & IS_WORD) !== 0; next = classAt(codes, ++at)) all |= next;
      words[2 * count] = start;
      words[2 * count + 1] = at;
      count++;
      if ((all & IS_DIGIT) !== 0) this.digitsIn(start, at);
    }
    this.word_count = count;
    return at;
  }

  private digitsIn(from: number, to: number): void {
    const { codes } = this;
    if (from >= this.token_end) this.token(from);
    for (let at = from; at < to; ) {
      if (isDigit(codes[at]!)) at = this.digitsFrom(at);
      else at++;
    }
  }

  private token(word: number): void {
    const { codes } = this;
    let from = word;
    while (from > this.token_end && (classBefore(codes, from) & IS_TOKEN) !== 0) from--;
    const to = endOfRun(codes, word, IS_TOKEN);
    this.token_end = to;
    if (to - from >= 6 && isTokenValue(codes, from, to)) this.found.tokens.push(from, to);
  }

  /** A run of digits starts here. Returns its end. */
  private digitsFrom(at: number): number {
    const { codes, found } = this;
    let to = at + 1;
    while (isDigit(codes[to]!)) to++;
    const before = at === 0 ? 0 : codes[at - 1]!;
    if (isLatin(before) && at > 1 && isLatin(codes[at - 2]!)) {
      this.account(at);
      this.checkedAccount(at);
    }
    if (endsWithCurrency(codes, before === SPACE ? at - 1 : at))
      found.amounts_after.push(at, endOfAmount(codes, at, MAX_AMOUNT));
    if (before === POINT || (classBefore(codes, at) & IS_WORD) !== 0) return to;
    if (codes[to] === POINT) this.dottedNumbers(at, before);
    if (before === COMMA) return to;
    if (at >= this.groups_end) this.group(at);
    if (at >= this.before_end) this.amountBefore(at);
    return to;
  }

  private dottedNumbers(at: number, before: number): void {
    if (at >= this.addresses_end) this.address(at);
    const phone = before === COMMA ? -1 : endOfPhone(this.codes, at);
    if (phone >= 0) this.found.phones.push(at, phone);
  }

  private amountBefore(at: number): void {
    const { codes } = this;
    const end = endOfAmount(codes, at, MAX_AMOUNT + 1);
    if (end - at > MAX_AMOUNT) return;
    const to = endOfCurrency(codes, codes[end] === SPACE ? end + 1 : end);
    if (to < 0) return;
    this.found.amounts_before.push(at, to);
    this.before_end = to;
  }

  /** 7 to 19 digits, with at most two separators between each two. No word, dot or comma is before the first. */
  private group(at: number): void {
    const { codes, found } = this;
    const before = at === 0 ? 0 : codes[at - 1]!;
    let end = -1;
    let gap = 0;
    for (let i = at, digits = 0; digits < MAX_GROUP_DIGITS && gap <= 2; i++) {
      if ((classAt(codes, i) & IS_DIGIT) !== 0) {
        gap = 0;
        if (++digits >= MIN_GROUP_DIGITS && (classAt(codes, i + 1) & IS_WORD) === 0) end = i + 1;
      } else if (SEPARATORS[codes[i]!] === 1) gap++;
      else break;
    }
    if (end < 0) return;
    const isSigned = before === PLUS && at > 1 && !isGroupBlocker(codes, at - 2);
    found.groups.push(isSigned || (at === 1 && before === PLUS) ? at - 1 : at, end);
    this.groups_end = end;
  }

  /** Two letters before these two digits, then four characters and one to seven groups, as an IBAN is printed. */
  private account(at: number): void {
    const { codes } = this;
    const from = at - 2;
    if (from < this.accounts_end || codes[at + 2] !== SPACE || !isDigit(codes[at + 1]!)) return;
    if ((classBefore(codes, from) & IS_WORD) !== 0) return;
    const first = at + 3;
    if (endOfLatinRun(codes, first, 5) !== first + 4) return;
    let end = -1;
    let next = first + 4;
    for (let groups = 0; groups < 7 && codes[next] === SPACE; groups++) {
      const start = next + 1;
      next = endOfLatinRun(codes, start, 5);
      const isGroup = next > start && next - start <= 4 && (classAt(codes, next) & IS_WORD) === 0;
      if (!isGroup || !hasDigit(codes, start, next)) break;
      end = next;
    }
    if (end < 0) return;
    this.found.accounts.push(from, end);
    this.accounts_end = end;
  }

  private checkedAccount(at: number): void {
    const { codes } = this;
    const from = at - 2;
    if (from < this.checked_end || !isDigit(codes[at + 1]!) || (classBefore(codes, from) & IS_WORD) !== 0)
      return;
    const end = endOfAccount(codes, from);
    if (end < 0) return;
    this.found.checked_accounts.push(from, end);
    this.checked_end = end;
  }

  /** Four numbers of at most three digits. */
  private address(at: number): void {
    const { codes } = this;
    let end = at;
    for (let part = 0; part < 4; part++) {
      if (part > 0 && codes[end++] !== POINT) return;
      const start = end;
      while (isDigit(codes[end]!) && end - start < 4) end++;
      if (end === start || end - start > 3) return;
    }
    if ((classAt(codes, end) & IS_WORD) !== 0 || (codes[end] === POINT && isDigit(codes[end + 1]!))) return;
    this.found.addresses.push(at, end);
    this.addresses_end = end;
  }
}

const PART = 2_048;
const MIN_TOKEN_DIGITS = 3;
const MAX_TOKEN = 128;
const MIN_GROUP_DIGITS = 7;
const MAX_GROUP_DIGITS = 19;
/** Maximum length of the number in an amount. */
const MAX_AMOUNT = 21;
const SEPARATORS = flagsOf(" ()/-");
const IN_AMOUNT = flagsOf("0123456789.,'");

let kept_places = new Int32Array(1_024);

/** Room for a scan that ends before the next one begins. */
function wordPlaces(size: number): Int32Array {
  if (size > kept_places.length) kept_places = new Int32Array(2 ** Math.ceil(Math.log2(size)));
  return kept_places;
}

const isDigit = (code: number): boolean => code >= 48 && code <= 57;
const isLatin = (code: number): boolean => code >= 97 && code <= 122;

function endOfLatinRun(codes: Uint16Array, from: number, max: number): number {
  let at = from;
  while (at - from < max && (isDigit(codes[at]!) || isLatin(codes[at]!))) at++;
  return at;
}

function hasDigit(codes: Uint16Array, from: number, to: number): boolean {
  for (let i = from; i < to; i++) if (isDigit(codes[i]!)) return true;
  return false;
}

const isGroupBlocker = (codes: Uint16Array, at: number): boolean =>
  codes[at] === COMMA || (classAt(codes, at) & (IS_WORD | IS_DOT)) !== 0;

function endOfAmount(codes: Uint16Array, from: number, max: number): number {
  let at = from;
  while (at - from < max && IN_AMOUNT[codes[at]!] === 1) at++;
  return at;
}

/** Three digits or more, and no other number before the first of them. */
function isTokenValue(codes: Uint16Array, from: number, to: number): boolean {
  if (to - from > 2 * MAX_TOKEN) return false;
  let digits = 0;
  let chars = to - from;
  for (let i = from; i < to; i++) {
    const found = classAt(codes, i);
    if ((found & IS_DIGIT) !== 0) digits++;
    else if (digits === 0 && (found & IS_NUMBER) !== 0) return false;
    if (isLowSurrogate(codes[i]!)) chars--;
  }
  return digits >= MIN_TOKEN_DIGITS && chars >= 6 && chars <= MAX_TOKEN;
}
