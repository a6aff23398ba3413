/**
 * RFC 8785 canonical JSON for values that parseJson or assertJson has accepted. Object keys sort by
 * UTF-16 code units and numbers print as ECMAScript prints them, which is what the RFC asks for.
 * Written here because it runs on every call; the `canonicalize` package is its oracle in the tests.
 */
import type { Json } from "./json.ts";

export function canonical(value: Json): string {
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "number") {
    if (!Number.isFinite(value)) throw new TypeError("canonical JSON has no NaN or Infinity");
    return Object.is(value, -0) ? "0" : String(value);
  }
  if (typeof value === "string") return quoted(value);
  if (Array.isArray(value)) {
    let out = "[";
    for (let i = 0; i < value.length; i++) out += i === 0 ? canonical(value[i]!) : `,${canonical(value[i]!)}`;
    return `${out}]`;
  }
  let out = "";
  for (const key of inOrder(Object.keys(value))) {
    const member = value[key];
    if (member === undefined) continue;
    out += `${out === "" ? "" : ","}${quoted(key)}:${canonical(member)}`;
  }
  return `{${out}}`;
}

/** Printable ASCII that JSON spells as it is. */
const PLAIN = /^[ !#-[\]-~]*$/;

/** A string as JSON, for half of what JSON.stringify takes where nothing in it is escaped. */
export function quoted(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : JSON.stringify(text);
}

/** By insertion while they are few: the general way takes five times as long to begin. */
function inOrder(keys: string[]): string[] {
  if (keys.length > 16) return keys.sort();
  for (let i = 1; i < keys.length; i++) {
    const key = keys[i]!;
    let at = i;
    for (; at > 0 && keys[at - 1]! > key; at--) keys[at] = keys[at - 1]!;
    keys[at] = key;
  }
  return keys;
}
