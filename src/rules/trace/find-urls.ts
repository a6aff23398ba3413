/** Finds URLs, without their scheme, account and `www.`. */
import { flagsOf, skipWww } from "./text-codes.ts";

export interface UrlPlace {
  from: number;
  to: number;
  host_end: number;
}

const MAX_REST = 2_000;
const MAX_ACCOUNT = 200;
const MAX_SCHEME = 10;
const [AT, DOT, SLASH, OPENED, CLOSED] = [0x40, 0x2e, 0x2f, 0x5b, 0x5d];

const SPACES =
  "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff";
const ENDS = flagsOf(`${SPACES}"'<>\`{}|\\^[]`);
const SCHEME = flagsOf("abcdefghijklmnopqrstuvwxyz0123456789+-");
const PUNCTUATION = flagsOf(".,;:!?)]}'\"*_-");
const HOST_ENDS = flagsOf("/?#:");
const EMPTY_ENDS = flagsOf("/?#");
const LITERAL = flagsOf("0123456789abcdef:.");

export function findUrls(text: string, codes: Uint16Array): UrlPlace[] {
  const found: UrlPlace[] = [];
  let end = 0;
  for (let at = text.indexOf("://"); at >= 0; at = text.indexOf("://", Math.max(end, at + 1))) {
    if (!hasScheme(codes, at, end)) continue;
    const start = at + 3;
    const literal = endOfLiteral(codes, start);
    end = endOfRest(codes, literal);
    let to = end;
    while (to > literal && PUNCTUATION[codes[to - 1]!] === 1) to--;
    const from = skipWww(codes, skipAccount(codes, start, to), to);
    found.push(placeOf(codes, from, to));
  }
  return found;
}

/** A letter, and one to nine more characters, after the end of the last URL. */
function hasScheme(codes: Uint16Array, colon: number, end: number): boolean {
  let at = colon - 1;
  for (; at >= end && colon - at <= MAX_SCHEME && SCHEME[codes[at]!] === 1; at--)
    if (colon - at > 1 && codes[at]! >= 97) return true;
  return false;
}

/** The end of an address in brackets, or where it would begin. */
function endOfLiteral(codes: Uint16Array, from: number): number {
  if (codes[from] !== OPENED) return from;
  let at = from + 1;
  while (LITERAL[codes[at]!] === 1) at++;
  const length = at - from - 1;
  return codes[at] === CLOSED && length >= 2 && length <= 45 ? at + 1 : from;
}

function endOfRest(codes: Uint16Array, from: number): number {
  const last = Math.min(codes.length - 1, from + MAX_REST);
  let at = from;
  while (at < last && ENDS[codes[at]!] !== 1) at++;
  return at;
}

function skipAccount(codes: Uint16Array, from: number, to: number): number {
  for (let at = from; at < to && at - from <= MAX_ACCOUNT; at++) {
    if (codes[at] === AT) return at + 1;
    if (codes[at] === SLASH) break;
  }
  return from;
}

function placeOf(codes: Uint16Array, from: number, end: number): UrlPlace {
  let host_end = endOfLiteral(codes, from);
  if (host_end === from || host_end > end) {
    host_end = from;
    while (host_end < end && HOST_ENDS[codes[host_end]!] !== 1) host_end++;
    while (host_end > from && codes[host_end - 1] === DOT) host_end--;
  }
  let to = end;
  while (to > from && EMPTY_ENDS[codes[to - 1]!] === 1) to--;
  return { from, to, host_end };
}
