/** Groups equal neighbours in a list, so that a page can fold them. */

/** Minimum size of a group. Fewer items are as quick to read one by one. */
const LEAST = 3;

/** Splits the list into groups of equal neighbours. Runs shorter than the minimum become single items. */
export function groupEqualNeighbours<T>(list: readonly T[], same: (a: T, b: T) => boolean): T[][] {
  const groups: T[][] = [];
  for (const one of list) {
    const last = groups.at(-1);
    if (last !== undefined && same(last[0] as T, one)) last.push(one);
    else groups.push([one]);
  }
  return groups.flatMap((group) => (group.length < LEAST ? group.map((one) => [one]) : [group]));
}
