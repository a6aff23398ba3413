/** Partial match: objects can have members beyond the expected ones; lists and scalars must be equal. */
import { toCanonicalJson } from "./json/canonical.ts";
import { isJsonObject, type JsonValue } from "./json/json.ts";

const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_-]*$/;

/** Returns the path of the first difference from the expected value, or null if `observed` matches. */
export function firstMismatch(expect: JsonValue, observed: JsonValue, at = ""): string | null {
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
  // A list must match exactly, including its items.
  if (toCanonicalJson(expect) === toCanonicalJson(observed)) return null;
  const [want, got] = [typeOf(expect), typeOf(observed)];
  return want === got ? `${place(at)} differs` : `${place(at)} is ${got}, not ${want}`;
}

function place(at: string): string {
  return at === "" ? "the answer" : at.startsWith(".") ? at.slice(1) : at;
}

function typeOf(value: JsonValue): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}
