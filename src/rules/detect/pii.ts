/** Finds personal data: email addresses, phone numbers, payment cards, US social security numbers, IBANs. */
import { countrySpecs, isValidIBAN } from "ibantools";
import { collectHits, type DetectorHit, mergeHits, replaceHits, trailingHit } from "./hits.ts";
import { findPhones } from "./phone.ts";

export function findPii(text: string, key?: string): DetectorHit[] {
  if (text.length < 6) return [];
  const hits: DetectorHit[] = [];
  if (text.includes("@")) findEmails(text, hits);
  if (/\d/.test(text)) {
    findIbans(text, hits);
    findCards(text, hits);
    findSsns(text, hits, key);
    hits.push(...findPhones(text, key));
  }
  return mergeHits(hits);
}

export function redactPii(text: string, key?: string): string {
  return replaceHits(text, findPii(text, key), (kind) => `[PII:${kind}]`);
}

const EMAIL =
  /(?<![\p{L}\p{N}._%+-])[\p{L}\p{N}._%+-]{1,64}@[\p{L}\p{N}-]{1,63}(?:\.[\p{L}\p{N}-]{1,63}){1,8}(?![\p{L}\p{N}@])/gu;
/** Excludes file names such as `logo@2x.png`, and `git@host`, the usual login of repositories. */
const NOT_EMAIL = /^git@|\.(?:png|jpe?g|gif|svg|webp|avif|ico|css|js|ts|mjs|json|html?|pdf|woff2?)$/i;
/** Matches a user name and password before a host, which are not an email address. */
const IN_URL = /:\/\/[^\s/@]*$/;

function findEmails(text: string, hits: DetectorHit[]): void {
  collectHits(text, EMAIL, hits, (match) => {
    const value = match[0];
    const top = value.slice(value.lastIndexOf(".") + 1);
    if (!/^(?:\p{L}{2,24}|xn--[a-z0-9-]{2,20})$/iu.test(top) || NOT_EMAIL.test(value)) return undefined;
    if (IN_URL.test(text.slice(Math.max(0, match.index - 80), match.index))) return undefined;
    return trailingHit("email", match);
  });
}

const IBAN_START = /(?<![A-Za-z0-9])([A-Za-z]{2})\d{2}(?=[ -]?[A-Za-z0-9])/g;

/** The country determines the length of an IBAN, so following words are not part of it. */
function findIbans(text: string, hits: DetectorHit[]): void {
  collectHits(text, IBAN_START, hits, (match) => {
    const country = match[1]!.toUpperCase();
    const length = Object.hasOwn(countrySpecs, country) ? countrySpecs[country]?.chars : undefined;
    if (length === undefined || length === null) return undefined;
    const end = ibanEnd(text, match.index, length);
    if (end === undefined || !isValidIBAN(text.slice(match.index, end).replace(/[ -]/g, "").toUpperCase())) {
      return undefined;
    }
    return { kind: "iban", start: match.index, end };
  });
}

/**
 * End of an IBAN of this length, with at most one space or hyphen between groups. Undefined if the text does not fit or
 * the checksum is wrong. The checksum runs first, since the library's own check costs more.
 */
function ibanEnd(text: string, start: number, length: number): number | undefined {
  let at = start;
  let taken = 0;
  let head = 0;
  let rest = 0;
  for (; taken < length; at++) {
    const value = digit36(text.charCodeAt(at));
    if (value < 0) {
      const gap = text[at];
      if ((gap !== " " && gap !== "-") || digit36(text.charCodeAt(at + 1)) < 0) return undefined;
      continue;
    }
    // The checksum counts the country and check digits last.
    if (taken < 4) head = append(head, value);
    else rest = append(rest, value) % 97;
    taken++;
  }
  if (digit36(text.charCodeAt(at)) >= 0) return undefined;
  return (rest * 1_000_000 + head) % 97 === 1 ? at : undefined;
}

function append(number: number, value: number): number {
  return number * (value > 9 ? 100 : 10) + value;
}

/** Digits give 0 to 9, letters 10 to 35, anything else -1. */
function digit36(c: number): number {
  if (c >= 48 && c <= 57) return c - 48;
  if (c >= 65 && c <= 90) return c - 55;
  return c >= 97 && c <= 122 ? c - 87 : -1;
}

const CARD = /(?<![A-Za-z0-9_.-])\d(?:[ -]?\d){12,18}(?![A-Za-z0-9_]|[.-]\d)/g;
/** Card number prefixes in the ranges that the networks publish. */
const ISSUER =
  /^(?:4\d{12}(?:\d{3}){0,2}|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}|3(?:0[0-5]|[689]\d)\d{11}|(?:6011|64[4-9]\d|65\d\d)\d{12,15}|35(?:2[89]|[3-8]\d)\d{12}|62\d{14,17}|(?:50|5[6-9]|6\d)\d{11,17})$/;

function findCards(text: string, hits: DetectorHit[]): void {
  collectHits(text, CARD, hits, (match) => {
    const digits = match[0].replace(/\D/g, "");
    return ISSUER.test(digits) && luhn(digits) ? trailingHit("card", match) : undefined;
  });
}

function luhn(digits: string): boolean {
  let sum = 0;
  for (let i = 0; i < digits.length; i++) {
    let n = digits.charCodeAt(digits.length - 1 - i) - 48;
    if (i % 2 === 1) n = n > 4 ? n * 2 - 9 : n * 2;
    sum += n;
  }
  return sum % 10 === 0;
}

const SSN =
  /(?<![A-Za-z0-9_.-])(?!000|666|9\d\d)\d{3}([- ])(?!00)\d{2}\1(?!0000)\d{4}(?![A-Za-z0-9_]|[.-]\d)/g;
const NAMED_SSN =
  /(?<![A-Za-z])(?:ssn|social security(?: number)?)[^\d\n]{0,12}((?!000|666|9\d\d)\d{3}[- ]?\d{2}[- ]?\d{4})(?!\d)/gi;
const SSN_KEY = /ssn$|social_?security/i;

function findSsns(text: string, hits: DetectorHit[], key?: string): void {
  collectHits(text, SSN, hits, (match) => ({
    kind: "ssn",
    start: match.index,
    end: match.index + match[0].length,
  }));
  collectHits(text, NAMED_SSN, hits, (match) => trailingHit("ssn", match));
  if (key !== undefined && SSN_KEY.test(key) && /^(?!000|666|9)\d{9}$/.test(text)) {
    hits.push({ kind: "ssn", start: 0, end: text.length });
  }
}
