/**
 * RFC 8785 canonical JSON for values that parseJson or assertJson has accepted. Object keys sort by
 * UTF-16 code units and numbers print as ECMAScript prints them, which is what the RFC asks for.
 * Written here because it runs on every call; the `canonicalize` package is its oracle in the tests.
 */
import type { Json } from "./json.ts";
import { isLargeValue } from "./large-values.ts";
import { type Paced, UNITS_A_PAUSE } from "./turns.ts";

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

/** The same in turns: what is small is written at once, and of what is large one member after the other. */
export function* canonicalizing(value: Json): Paced<string> {
  if (value === null || typeof value !== "object" || !isLargeValue(value)) return canonical(value);
  const pieces: string[] = [];
  if (Array.isArray(value)) {
    for (const [i, member] of value.entries()) {
      if (i % PAUSE_AFTER === 0) yield;
      pieces.push(yield* canonicalizing(member));
    }
    return `[${pieces.join(",")}]`;
  }
  const names = inOrder(Object.keys(value));
  for (const [i, name] of names.entries()) {
    if (i % PAUSE_AFTER === 0) yield;
    const member = value[name];
    if (member !== undefined) pieces.push(`${quoted(name)}:${yield* canonicalizing(member)}`);
  }
  return `{${pieces.join(",")}}`;
}

/** Members may themselves have as many members as is small. */
const PAUSE_AFTER = UNITS_A_PAUSE / 1_024;

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
