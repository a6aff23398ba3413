/** Canonical JSON of another implementation than the service's. */
import canonicalize from "canonicalize";

export function canonicalOf(value: unknown): string {
  const text = canonicalize(value);
  if (text === undefined) throw new Error("the value has no JSON form");
  return text;
}
