/** Fields that a manifest declares. Undeclared ones are left out of its content address. */

type DeclaredFields<Entry> = {
  [Name in keyof Entry as undefined extends Entry[Name] ? never : Name]: Entry[Name];
} & {
  [Name in keyof Entry as undefined extends Entry[Name] ? Name : never]?: Exclude<Entry[Name], undefined>;
};

/** Removes undeclared fields, so that manifests without them keep their content address. */
export function declaredFields<Entry extends object>(entry: Entry): DeclaredFields<Entry> {
  return Object.fromEntries(
    Object.entries(entry).filter(([, value]) => value !== undefined),
  ) as DeclaredFields<Entry>;
}

export const toUndeclared = <Value>(value: Value): NonNullable<Value> | undefined => value ?? undefined;
