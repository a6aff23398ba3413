/** Account numbers with a checksum, and phone numbers with dots: values whose digits are grouped in many ways. */
import { classAt, flagsOf, IS_WORD } from "./text-codes.ts";

const MIN_ACCOUNT = 15;
const MAX_ACCOUNT = 34;
const DOT = 0x2e;
const SEPARATORS = flagsOf(" -./");

const isDigit = (code: number): boolean => code >= 48 && code <= 57;
const isLatin = (code: number): boolean => code >= 97 && code <= 122;

/**
 * The end of the international bank account number that starts here with two letters and two digits, with at most one
 * separator between its characters; -1 if no word up to its maximum length ends with a right checksum.
 */
export function endOfAccount(codes: Uint16Array, from: number): number {
  // The country and the check digits count last. Two letters and two digits are six digits.
  let first = 0;
  for (let i = 0; i < 4; i++) first = checksum(first, codes[from + i]!);
  let rest = 0;
  let end = -1;
  let at = from + 4;
  for (let chars = 4; chars < MAX_ACCOUNT; chars++, at++) {
    if (SEPARATORS[codes[at]!] === 1) at++;
    const code = codes[at]!;
    if (!isDigit(code) && !isLatin(code)) break;
    rest = checksum(rest, code);
    if (chars + 1 < MIN_ACCOUNT || (classAt(codes, at + 1) & IS_WORD) !== 0) continue;
    if ((rest * 1_000_000 + first) % 97 === 1) end = at + 1;
  }
  return end;
}

/** Letters count as two digits. */
const checksum = (sum: number, code: number): number =>
  isDigit(code) ? (sum * 10 + code - 48) % 97 : (sum * 100 + code - 87) % 97;

/** The end of a phone number such as `1.415.555.2671`; -1 if there is none. */
export function endOfPhone(codes: Uint16Array, from: number): number {
  const first = endOfDigits(codes, from);
  if (codes[first] !== DOT) return -1;
  // The country is missing, or one to three digits.
  const end = endOfLocalNumber(codes, from, first);
  if (end >= 0) return end;
  const second = endOfDigits(codes, first + 1);
  return first - from <= 3 && codes[second] === DOT ? endOfLocalNumber(codes, first + 1, second) : -1;
}

/** Three digits, three or four, and four; -1 if it does not end there. */
function endOfLocalNumber(codes: Uint16Array, from: number, area: number): number {
  if (area - from !== 3) return -1;
  const middle = endOfDigits(codes, area + 1);
  const length = middle - area - 1;
  if ((length !== 3 && length !== 4) || codes[middle] !== DOT) return -1;
  const end = endOfDigits(codes, middle + 1);
  const goesOn = (classAt(codes, end) & IS_WORD) !== 0 || (codes[end] === DOT && isDigit(codes[end + 1]!));
  return end - middle - 1 === 4 && !goesOn ? end : -1;
}

function endOfDigits(codes: Uint16Array, from: number): number {
  let at = from;
  while (isDigit(codes[at]!) && at - from < 5) at++;
  return at;
}
