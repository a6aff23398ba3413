/**
 * A text as an array of UTF-16 code units, and what each unit is. Scans read every unit several times, and reading an
 * array costs a fraction of reading a text.
 */

export const IS_LETTER = 1;
/** Any digit or number sign of any alphabet. */
export const IS_NUMBER = 2;
/** 0 to 9. */
export const IS_DIGIT = 4;
export const IS_HYPHEN = 8;
export const IS_UNDERSCORE = 16;
export const IS_DOT = 32;
/** Characters that only the name in an e-mail address holds. */
const IN_ADDRESS = 64;
const KNOWN = 128;

export const IS_WORD = IS_LETTER | IS_NUMBER;
export const IS_TOKEN = IS_WORD | IS_HYPHEN | IS_UNDERSCORE;
/** Hosts and file names. */
export const IS_DOTTED = IS_TOKEN | IS_DOT;
/** The part of an address before the `@`. */
export const IS_LOCAL_PART = IS_DOTTED | IN_ADDRESS;

const CHARS = { "-": IS_HYPHEN, _: IS_UNDERSCORE, ".": IS_DOT, "%": IN_ADDRESS, "+": IN_ADDRESS };
/** By code unit. Classes of units above ASCII are added when they occur. */
const classes = new Uint8Array(65_536);
for (let code = 0; code < 128; code++) {
  const char = String.fromCharCode(code);
  const own = CHARS[char as keyof typeof CHARS] ?? 0;
  classes[code] =
    KNOWN | own | (/\d/.test(char) ? IS_NUMBER | IS_DIGIT : /[a-z]/i.test(char) ? IS_LETTER : 0);
}

/** 1 for these characters, by code unit. */
export function flagsOf(chars: string): Uint8Array {
  const flags = new Uint8Array(65_536);
  for (let i = 0; i < chars.length; i++) flags[chars.charCodeAt(i)] = 1;
  return flags;
}

/** The class of the character at this place, which can be the end of the text. */
export function classAt(codes: Uint16Array, at: number): number {
  const code = codes[at]!;
  return classes[code]! || learnClass(codes, at, code);
}

export const classBefore = (codes: Uint16Array, at: number): number =>
  at === 0 ? KNOWN : classAt(codes, at - 1);

function learnClass(codes: Uint16Array, at: number, code: number): number {
  if (!isSurrogate(code)) return learned(code);
  const from = isLowSurrogate(code) && at > 0 && isHighSurrogate(codes[at - 1]!) ? at - 1 : at;
  return classOfChar(String.fromCharCode(codes[from]!, codes[from + 1]!));
}

function learned(code: number): number {
  const found = classOfChar(String.fromCharCode(code));
  classes[code] = found;
  return found;
}

function classOfChar(char: string): number {
  return KNOWN | (/^\p{L}/u.test(char) ? IS_LETTER : /^\p{N}/u.test(char) ? IS_NUMBER : 0);
}

const isSurrogate = (code: number): boolean => code >= 0xd800 && code <= 0xdfff;
const isHighSurrogate = (code: number): boolean => code >= 0xd800 && code <= 0xdbff;
/** The second unit of a character outside of the basic plane. */
export const isLowSurrogate = (code: number): boolean => code >= 0xdc00 && code <= 0xdfff;

/** Shorter texts are copied unit by unit, because a native call costs more. */
const SHORT = 24;
/** A buffer of at most this size is kept. */
const MAX_KEPT_BYTES = 4_194_304;

let kept = Buffer.alloc(8_192);

/** The units of a text, and a 0 after them. Valid until the next call. */
export function codesOf(text: string): Uint16Array {
  const { length } = text;
  const bytes = bufferOf(2 * length + 2);
  const codes = new Uint16Array(bytes.buffer, bytes.byteOffset, length + 1);
  if (length >= SHORT) bytes.write(text, 0, "utf16le");
  else for (let i = 0; i < length; i++) codes[i] = text.charCodeAt(i);
  codes[length] = 0;
  return codes;
}

function bufferOf(size: number): Buffer {
  if (size <= kept.length) return kept;
  const bytes = Buffer.allocUnsafeSlow(2 ** Math.ceil(Math.log2(size)));
  if (bytes.length <= MAX_KEPT_BYTES) kept = bytes;
  return bytes;
}

const WWW = [..."www."].map((char) => char.charCodeAt(0));

/** The start of a host without its `www.`. */
export function skipWww(codes: Uint16Array, from: number, to: number): number {
  if (to - from < WWW.length) return from;
  for (let i = 0; i < WWW.length; i++) if (codes[from + i] !== WWW[i]) return from;
  return from + WWW.length;
}
