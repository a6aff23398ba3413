/** Partial match: objects need only hold what is expected of them, lists and plain values must be the same. */
import { canonical } from "./canonical.ts";
import { isJsonObject, type Json } from "./json.ts";

const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_-]*$/;

/** Where the answer first differs from what is expected, or null where it shows all of it. */
export function firstMismatch(expect: Json, observed: Json, at = ""): string | null {
  if (isJsonObject(expect)) {
    if (!isJsonObject(observed)) return `${place(at)} is ${typeOf(observed)}, not an object`;
    for (const name of Object.keys(expect)) {
      const inner = at + (IDENTIFIER.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`);
      if (!Object.hasOwn(observed, name)) return `${place(inner)} is missing`;
      const found = firstMismatch(expect[name]!, observed[name]!, inner);
      if (found !== null) return found;
    }
    return null;
  }
  // A list must match whole, and so must what is in it.
  if (canonical(expect) === canonical(observed)) return null;
  const [want, got] = [typeOf(expect), typeOf(observed)];
  return want === got ? `${place(at)} differs` : `${place(at)} is ${got}, not ${want}`;
}

function place(at: string): string {
  return at === "" ? "the answer" : at.startsWith(".") ? at.slice(1) : at;
}

function typeOf(value: Json): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}
