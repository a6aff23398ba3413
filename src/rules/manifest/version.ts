/**
 * Order of versions: by their dotted numbers, then as text. A missing part counts as 0, so `1.2` and `1.2.0` have equal
 * numbers and compare as text.
 */

const NUMBERS = /^[vV]?(\d+(?:\.\d+)*)/;

/** Negative if `a` is older than `b`, positive if newer, 0 only if both are the same text. */
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

/** Compares digits as text: a build number can be longer than a double can represent. */
function compareDigits(a: string, b: string): number {
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : a > b ? 1 : 0;
}
