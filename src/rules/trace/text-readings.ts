/**
 * What a text says once it is decoded: folded in Unicode form, letter case and invisible characters, without the
 * escapes of URLs, HTML and JSON, and without simple disguises.
 */

import { isUtf8 } from "node:buffer";
import { flagsOf } from "./text-codes.ts";

export interface TextReading {
  text: string;
  /** False if another reading has the same words. */
  has_words: boolean;
}

/** A text in plain ASCII has one reading, unless something in it is encoded or disguised. */
export function readingsOf(source: string): TextReading[] {
  const isPlain = PLAIN.test(source);
  const plain = { text: isPlain ? source.toLowerCase() : foldValue(source), has_words: true };
  const isEncoded = source.includes("%") || source.includes("&") || source.includes("\\");
  const decoded = isEncoded ? decodeText(source) : source;
  const readings = [plain];
  const text = isPlain && !isEncoded ? plain.text : foldFurther(decoded);
  if (text !== plain.text) readings.push({ text, has_words: decoded !== source });
  const undisguised = undisguise(text);
  if (undisguised !== text) readings.push({ text: undisguised, has_words: text.includes("<") });
  const inner = decodeTokens(decoded);
  if (inner !== "") readings.push({ text: foldFurther(inner), has_words: true });
  return readings;
}

const PLAIN = /^[\x20-\x7e\t-\r]*$/;

function foldValue(text: string): string {
  return text
    .normalize("NFKC")
    .replace(/\p{Cf}/gu, "")
    .toLowerCase();
}

/** Also without accents, and with one form of each digit, dash and dot. Stored fingerprints have the other folding. */
function foldFurther(text: string): string {
  if (PLAIN.test(text)) return text.toLowerCase();
  return text
    .replace(INVISIBLE, "")
    .normalize("NFKD")
    .replace(/\p{Mn}/gu, "")
    .normalize("NFKC")
    .replace(INVISIBLE, "")
    .replace(/\p{Nd}/gu, asciiDigit)
    .replace(/(?<=\d)[\p{Pd}\u2212](?=\d)/gu, "-")
    .replace(/(?<=[a-z0-9])\u3002(?=[a-z0-9])/gi, ".")
    .toUpperCase()
    .toLowerCase();
}

const INVISIBLE = /[\p{Cf}\p{Default_Ignorable_Code_Point}]/gu;

/** Digits of each alphabet follow one another, beginning with its zero. */
function asciiDigit(char: string): string {
  const code = char.codePointAt(0)!;
  let zero = code;
  while (code - zero < 9 && /\p{Nd}/u.test(String.fromCodePoint(zero - 1))) zero--;
  return String(code - zero);
}

/** A value can be encoded twice. */
const MAX_DECODINGS = 3;

function decodeText(text: string): string {
  let decoded = text;
  for (let i = 0; i < MAX_DECODINGS; i++) {
    const next = decodeOnce(decoded);
    if (next === decoded) break;
    decoded = next;
  }
  return decoded;
}

const decodeOnce = (text: string): string =>
  text
    .replace(
      /\\(?:(u[0-9a-fA-F]{4}|u\{[0-9a-fA-F]{1,5}\}|x[0-9a-fA-F]{2})|([nrtbfv])|([^a-zA-Z0-9]))/g,
      (_, code, space, char) => {
        if (code !== undefined) return String.fromCodePoint(Number.parseInt(code.replace(/[ux{}]/g, ""), 16));
        return space === undefined ? char : " ";
      },
    )
    .replace(/(?:%[0-9a-fA-F]{2})+/g, decodePercent)
    .replace(/&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([a-zA-Z]{2,8})(?=;));?/g, (all, decimal, hex, name) => {
      if (name !== undefined) return ENTITIES[name.toLowerCase() as keyof typeof ENTITIES] ?? all;
      const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
      return code <= 0x10ffff ? String.fromCodePoint(code) : all;
    });

/** Also where other bytes are not UTF-8. */
function decodePercent(run: string): string {
  try {
    return decodeURIComponent(run);
  } catch {
    return run.replace(/%([0-7][0-9a-fA-F])/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
  }
}

/** The characters that values are made of, and those that every page escapes. */
const ENTITIES = {
  ...{ amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: " ", shy: "" },
  ...{ commat: "@", period: ".", colon: ":", sol: "/", num: "#", quest: "?", equals: "=" },
  ...{ lowbar: "_", hyphen: "-", dash: "-", plus: "+", percnt: "%", comma: "," },
} as const;

/** Tags that do not separate words. */
const INLINE_TAGS =
  /<(?:!--[^<>]{0,200}--|\/?(?:a|b|i|u|em|font|span|strong|sub|sup|wbr)(?:\s[^<>]{0,200})?)>/g;
const OTHER_TAGS = /<\/?[a-z][^<>]{0,200}>/g;

const BRACKETED = /[[({] ?(?:dot|\.|at|@) ?[\])}]/;

/** Joins values that tags, spaces, brackets or spelled punctuation separate. */
function undisguise(text: string): string {
  let seen = text;
  if (text.includes("<")) seen = seen.replace(INLINE_TAGS, "").replace(OTHER_TAGS, " ");
  if (/\s\S\s\S\s\S\s\S/.test(seen))
    seen = seen.replace(/(?<!\S)(?:\S\s){5,}\S(?!\S)/g, (letters) => letters.replace(/\s/g, ""));
  if (seen.includes(" dot ") || seen.includes(" @") || seen.includes("@ ") || BRACKETED.test(seen))
    seen = seen
      .replace(/ ?[[({] ?(?:dot|\.) ?[\])}] ?|(?<=[\p{L}\p{N}]) (?:dot|\.) (?=[\p{L}\p{N}])/gu, ".")
      .replace(/ ?[[({] ?(?:at|@) ?[\])}] ?| ?@ ?|(?<=[\p{L}\p{N}]) at (?=[\p{L}\p{N}-]{1,63}\.)/gu, "@");
  return seen;
}

/** The texts that Base64 or hexadecimal tokens encode. */
function decodeTokens(text: string): string {
  let found = "";
  // Most tokens are short, so most characters are skipped.
  for (let end = MIN_TOKEN - 1; end < text.length; ) {
    let from = end;
    while (from > end - MIN_TOKEN && IN_TOKEN[text.charCodeAt(from)] === 1) from--;
    if (from > end - MIN_TOKEN) {
      end = from + MIN_TOKEN;
      continue;
    }
    while (end + 1 < text.length && IN_TOKEN[text.charCodeAt(end + 1)] === 1) end++;
    const bytes = decodeToken(text.slice(from + 1, end + 1));
    // Few other tokens are texts in UTF-8.
    if (isUtf8(bytes) && !bytes.some(isControl)) found += `${bytes.toString("utf8")}\n`;
    end += MIN_TOKEN + 1;
  }
  return found;
}

const MIN_TOKEN = 16;
const IN_TOKEN = flagsOf("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-");

const decodeToken = (token: string): Buffer =>
  /^(?:0x)?(?:[0-9a-fA-F]{2})+$/.test(token)
    ? Buffer.from(token.replace(/^0x/, ""), "hex")
    : Buffer.from(token, "base64");

const isControl = (byte: number): boolean => (byte < 0x20 && (byte < 9 || byte > 13)) || byte === 0x7f;
