/**
 * Objects and lists that are known to be large. Listing the names of an object with tens of thousands of members takes
 * as long as a slice of other work, so that happens once for each object. Values never change after they were parsed.
 */

/** An object with more members is large. */
export const FEW_MEMBERS = 1_000;

const large = new WeakSet<object>();
const names = new WeakMap<object, readonly string[]>();

export const isKnownLarge = (value: object): boolean => large.has(value);

export function noteLarge(value: object): void {
  large.add(value);
}

/** The parser reports the number of members before other code lists them. */
export function noteMembers(object: object, members: number): void {
  if (members > FEW_MEMBERS) large.add(object);
}

/** Same names as `Object.keys`, cached for large objects. */
export function memberNames(object: object): readonly string[] {
  if (!large.has(object)) return Object.keys(object);
  const listed = names.get(object) ?? Object.keys(object);
  names.set(object, listed);
  return listed;
}
