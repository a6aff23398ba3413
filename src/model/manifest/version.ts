/**
 * The order of versions: by their dotted numbers, then as text. A part that is not there counts as 0, so
 * `1.2` and `1.2.0` are equal in numbers and only their text tells them apart.
 */

const NUMBERS = /^[vV]?(\d+(?:\.\d+)*)/;

/** Negative when `a` is older than `b`, positive when newer, 0 only when they are the same text. */
export function compareVersions(a: string, b: string): number {
  const left = numbersOf(a);
  const right = numbersOf(b);
  for (let i = 0; i < Math.max(left.length, right.length); i++) {
    const order = compareDigits(left[i] ?? "", right[i] ?? "");
    if (order !== 0) return order;
  }
  return a < b ? -1 : a > b ? 1 : 0;
}

function numbersOf(version: string): string[] {
  const match = NUMBERS.exec(version);
  return match === null ? [] : match[1]!.split(".").map((digits) => digits.replace(/^0+/, ""));
}

/** Digits are compared as digits: a build number may be longer than a double can hold. */
function compareDigits(a: string, b: string): number {
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : a > b ? 1 : 0;
}
