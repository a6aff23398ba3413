/** Equal lines in a row are told as one, with the single ones behind it. */

/** As few are still quicker to read one by one. */
const LEAST = 3;

/** The list in groups: neighbours that read the same together, from three on, everything else by itself. */
export function folded<T>(list: readonly T[], same: (a: T, b: T) => boolean): T[][] {
  const groups: T[][] = [];
  for (const one of list) {
    const last = groups.at(-1);
    if (last !== undefined && same(last[0] as T, one)) last.push(one);
    else groups.push([one]);
  }
  return groups.flatMap((group) => (group.length < LEAST ? group.map((one) => [one]) : [group]));
}
