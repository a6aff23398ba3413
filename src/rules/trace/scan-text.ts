/**
 * Finds the values of a text that a pattern describes. One pass over the characters picks the few places where a value
 * can start, and the pattern is tried only there: trying six patterns at every character would cost most of the time.
 * Each place is a superset of the pattern's own starts, so the matches are those of the pattern alone.
 */

const EMAIL_SIDE = /[\p{L}\p{N}._%+-]/u;
export const EMAIL_PATTERN =
  /(?<![\p{L}\p{N}._%+-])[\p{L}\p{N}._%+-]{1,64}@[\p{L}\p{N}-]{1,63}(?:\.[\p{L}\p{N}-]{1,63}){1,8}/uy;
/** Also matches file names, since `notes.md` is both. */
export const DOTTED_PATTERN =
  /(?<![\p{L}\p{N}@._-])(?:[\p{L}\p{N}_-]{1,63}\.){1,8}[\p{L}][\p{L}\p{N}-]{0,23}(?![\p{L}\p{N}_@-])/uy;
export const DIGIT_GROUPS = /(?<![\p{L}\p{N}.,])\+?\d(?:[ ()/-]{0,2}\d){6,18}(?![\p{L}\p{N}])/uy;
export const ACCOUNT_PATTERN =
  /(?<![\p{L}\p{N}])[a-z]{2}\d{2} [a-z0-9]{4}(?: (?=[a-z]{0,3}\d)[a-z0-9]{1,4}){1,7}(?![\p{L}\p{N}])/uy;
export const TOKEN_PATTERN =
  /(?<![\p{L}\p{N}_-])(?=[\p{L}_-]{0,127}\d)[\p{L}\p{N}_-]{6,128}(?![\p{L}\p{N}_-])/uy;
export const IP_ADDRESS = /(?<![\p{L}\p{N}.])\d{1,3}(?:\.\d{1,3}){3}(?![\p{L}\p{N}]|\.\d)/uy;
const CURRENCY = "[$€£¥₹]|usd|eur|gbp|chf|jpy|cny|inr|cad|aud|sek|nok|dkk|pln|dollars?|euros?|pounds?";
export const AMOUNT_AFTER = new RegExp(`(?<=(?:${CURRENCY}) ?)\\d[\\d.,']{0,20}`, "uy");
export const AMOUNT_BEFORE = new RegExp(
  `(?<![\\p{L}\\p{N}.,])\\d[\\d.,']{0,20} ?(?:${CURRENCY})(?![\\p{L}])`,
  "uy",
);
const CURRENCY_START = new Set([..."$€£¥₹uegcjiasndp"].map((char) => char.charCodeAt(0)));
/** What a currency ends with. */
const CURRENCY_END = new Set([..."$€£¥₹drpfyknso"].map((char) => char.charCodeAt(0)));

const [UNKNOWN, OTHER, WORD] = [0, 1, 2] as const;
/** By code unit: whether it is a letter or a number. Surrogates stay unknown. */
const classes = new Uint8Array(65_536);
const IS_WORD = /^[\p{L}\p{N}]$/u;

function isWord(text: string, at: number): boolean {
  if (at < 0 || at >= text.length) return false;
  const code = text.charCodeAt(at);
  const known = classes[code];
  return known === UNKNOWN ? learnClass(text, at, code) : known === WORD;
}

function learnClass(text: string, at: number, code: number): boolean {
  if (isSurrogate(code)) {
    const from = code >= 0xdc00 && at > 0 && isHighSurrogate(text.charCodeAt(at - 1)) ? at - 1 : at;
    return IS_WORD.test(String.fromCodePoint(text.codePointAt(from)!));
  }
  const is = IS_WORD.test(String.fromCharCode(code));
  classes[code] = is ? WORD : OTHER;
  return is;
}

const isSurrogate = (code: number): boolean => code >= 0xd800 && code <= 0xdfff;
const isHighSurrogate = (code: number): boolean => code >= 0xd800 && code <= 0xdbff;
const isDigit = (code: number): boolean => code >= 48 && code <= 57;

/** The end of the match of a sticky pattern at this place, or -1. */
function endOfMatch(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : -1;
}

/** Maximum length of the name before the `@`. */
const MAX_LOCAL = 64;

export function findEmails(text: string): string[] {
  const found: string[] = [];
  let end = 0;
  for (let at = text.indexOf("@"); at >= 0; at = text.indexOf("@", at + 1)) {
    let from = at;
    while (from > end && at - from <= MAX_LOCAL && isEmailSide(text, from - 1)) from--;
    if (from === at) continue;
    const to = endOfMatch(EMAIL_PATTERN, text, from);
    if (to < 0) continue;
    found.push(text.slice(from, to));
    end = to;
  }
  return found;
}

function isEmailSide(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return isSurrogate(code) || code > 127 ? isWord(text, at) : EMAIL_SIDE_ASCII[code] === 1;
}
const EMAIL_SIDE_ASCII = Uint8Array.from({ length: 128 }, (_, code) =>
  EMAIL_SIDE.test(String.fromCharCode(code)) ? 1 : 0,
);

/** Hosts and file names. They have a letter after a dot. */
export function findDotted(text: string): string[] {
  const found: string[] = [];
  let end = 0;
  for (let dot = text.indexOf("."); dot >= 0; dot = text.indexOf(".", dot + 1)) {
    if (dot < end || !isWord(text, dot + 1) || isDigit(text.charCodeAt(dot + 1))) continue;
    let from = dot;
    while (from > end && isLabel(text, from - 1)) from--;
    const to = endOfMatch(DOTTED_PATTERN, text, from);
    if (to >= 0) found.push(text.slice(from, to));
    // The rest of the run has no other start.
    end = Math.max(to, dot + 1);
    while (isLabel(text, end)) end++;
  }
  return found;
}

function isLabel(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code === 0x2e || isTokenChar(text, at, code);
}

const isTokenChar = (text: string, at: number, code: number): boolean =>
  code === 0x2d || code === 0x5f || isWord(text, at);

/** Values that contain digits, by their pattern, each list in the order of the text. */
export interface FoundNumbers {
  groups: string[];
  accounts: string[];
  /** At least three digits among letters, digits, `_` and `-`. */
  tokens: string[];
  addresses: string[];
  amounts_after: string[];
  amounts_before: string[];
}

export function findNumbers(text: string): FoundNumbers {
  const scan = new NumberScan(text);
  let token = -1;
  let digits = 0;
  let was_digit = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    const is_digit = isDigit(code);
    if (is_digit && !was_digit) scan.digitsFrom(at);
    was_digit = is_digit;
    if (is_digit || isTokenChar(text, at, code)) {
      if (token < 0) [token, digits] = [at, 0];
      if (is_digit) digits++;
    } else if (token >= 0) {
      scan.token(token, at, digits);
      token = -1;
    }
  }
  if (token >= 0) scan.token(token, text.length, digits);
  return scan.found;
}

const MIN_TOKEN_DIGITS = 3;
const ASCII_ONLY = /^[\x20-\x7e]*$/;

class NumberScan {
  readonly found: FoundNumbers = {
    groups: [],
    accounts: [],
    tokens: [],
    addresses: [],
    amounts_after: [],
    amounts_before: [],
  };
  private readonly text: string;
  /** Where the last match of each pattern ended: matches of one pattern do not overlap. */
  private groups_end = 0;
  private accounts_end = 0;
  private addresses_end = 0;
  private before_end = 0;

  constructor(text: string) {
    this.text = text;
  }

  token(from: number, to: number, digits: number): void {
    if (digits < MIN_TOKEN_DIGITS || to - from < 6) return;
    const text = this.text.slice(from, to);
    if (ASCII_ONLY.test(text) ? to - from <= 128 : endOfMatch(TOKEN_PATTERN, this.text, from) === to)
      this.found.tokens.push(text);
  }

  /** A run of digits starts here. */
  digitsFrom(at: number): void {
    const { text, found } = this;
    if (at >= this.groups_end && hasSevenDigits(text, at)) this.groups_end = this.group(at);
    this.account(at);
    const before = at === 0 ? 0 : text.charCodeAt(at - 1);
    if (CURRENCY_END.has(before === 0x20 ? text.charCodeAt(at - 2) : before)) {
      const to = endOfMatch(AMOUNT_AFTER, text, at);
      if (to >= 0) found.amounts_after.push(text.slice(at, to));
    }
    if (before === 0x2e || isWord(text, at - 1)) return;
    if (at >= this.addresses_end && isDottedDigits(text, at)) {
      const to = endOfMatch(IP_ADDRESS, text, at);
      if (to >= 0) found.addresses.push(text.slice(at, to));
      this.addresses_end = Math.max(to, this.addresses_end);
    }
    if (before === 0x2c || at < this.before_end || !this.precedesCurrency(at)) return;
    const to = endOfMatch(AMOUNT_BEFORE, text, at);
    if (to >= 0) found.amounts_before.push(text.slice(at, to));
    this.before_end = Math.max(to, this.before_end);
  }

  private group(at: number): number {
    const { text } = this;
    for (const from of text.charCodeAt(at - 1) === 0x2b ? [at - 1, at] : [at]) {
      const to = endOfMatch(DIGIT_GROUPS, text, from);
      if (to < 0) continue;
      this.found.groups.push(text.slice(from, to));
      return to;
    }
    return this.groups_end;
  }

  /** Two letters, two digits and a space, as at the start of an IBAN in groups. */
  private account(at: number): void {
    const { text } = this;
    const from = at - 2;
    if (from < this.accounts_end || text.charCodeAt(at + 2) !== 0x20 || !isDigit(text.charCodeAt(at + 1)))
      return;
    const to = endOfMatch(ACCOUNT_PATTERN, text, from);
    if (to < 0) return;
    this.found.accounts.push(text.slice(from, to));
    this.accounts_end = to;
  }

  private precedesCurrency(at: number): boolean {
    const { text } = this;
    let end = at + 1;
    while (end - at < AMOUNT_CHARS && isAmountChar(text.charCodeAt(end))) end++;
    const next = text.charCodeAt(end);
    return CURRENCY_START.has(next === 0x20 ? text.charCodeAt(end + 1) : next);
  }
}

/** Maximum length of the number in an amount, plus one. */
const AMOUNT_CHARS = 22;
const isAmountChar = (code: number): boolean =>
  isDigit(code) || code === 0x2e || code === 0x2c || code === 0x27;
const SEPARATORS = new Set([..." ()/-"].map((char) => char.charCodeAt(0)));

/** Whether seven digits follow, with at most two separators between each two. */
function hasSevenDigits(text: string, from: number): boolean {
  let digits = 0;
  let gap = 0;
  for (let at = from; digits < 7; at++) {
    const code = text.charCodeAt(at);
    if (isDigit(code)) [digits, gap] = [digits + 1, 0];
    else if (++gap > 2 || !SEPARATORS.has(code)) return false;
  }
  return true;
}

/** Whether one to three digits, a dot and a digit follow. */
function isDottedDigits(text: string, from: number): boolean {
  let at = from;
  while (at - from < 4 && isDigit(text.charCodeAt(at))) at++;
  return at - from <= 3 && text.charCodeAt(at) === 0x2e && isDigit(text.charCodeAt(at + 1));
}
