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
  if (typeof value === "string") return JSON.stringify(value);
  if (Array.isArray(value)) {
    let out = "[";
    for (let i = 0; i < value.length; i++) out += i === 0 ? canonical(value[i]!) : `,${canonical(value[i]!)}`;
    return `${out}]`;
  }
  let out = "";
  for (const key of Object.keys(value).sort()) {
    const member = value[key];
    if (member === undefined) continue;
    out += `${out === "" ? "" : ","}${JSON.stringify(key)}:${canonical(member)}`;
  }
  return `{${out}}`;
}
