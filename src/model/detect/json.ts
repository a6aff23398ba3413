/** Walks JSON with a finder: values and keys alike, since a secret can be the name of a field too. */
import type { Json, JsonObject } from "../../kernel/json.ts";
import type { Finder, Hit } from "./hit.ts";
import { redactPii } from "./pii.ts";
import { findSecrets, redactSecrets } from "./secrets.ts";

interface JsonHit {
  readonly kind: string;
  /** Where: `$args.headers.authorization`. Names that could themselves be values are left out. */
  readonly path: string;
  readonly start: number;
  readonly end: number;
  /** The hit is in the field's name. */
  readonly in_key: boolean;
}

/** A card or phone number may be sent as a number; smaller ones can be neither. */
const TELLING_NUMBER = 1e6;
const PLAIN_NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;

/** Every hit in the value, in document order. `most` bounds the answer, not what is looked at before it. */
export function scanJson(value: Json, finder: Finder, root = "$args", most = 1_000): JsonHit[] {
  const out: JsonHit[] = [];
  const add = (hits: readonly Hit[], path: string, in_key: boolean) => {
    for (const { kind, start, end } of hits)
      if (out.length < most) out.push({ kind, path, start, end, in_key });
  };
  const walk = (here: Json, path: string, key: string | undefined): void => {
    if (out.length >= most) return;
    const told = typeof here === "number" && Math.abs(here) >= TELLING_NUMBER ? String(here) : here;
    if (typeof told === "string") {
      add(finder(told, key), path, false);
      return;
    }
    if (here === null || typeof here !== "object") return;
    if (Array.isArray(here)) {
      for (let i = 0; i < here.length; i++) walk(here[i]!, `${path}[${i}]`, key);
      return;
    }
    for (const name of Object.keys(here)) {
      const inName = finder(name);
      const shown = inName.length === 0 && showable(name) ? `${path}.${name}` : `${path}[*]`;
      add(inName, shown, true);
      walk(here[name]!, shown, name);
    }
  };
  walk(value, root, undefined);
  return out;
}

/** A name that can only be a name: short, an identifier, and no secret itself. */
function showable(name: string): boolean {
  return PLAIN_NAME.test(name) && findSecrets(name).length === 0;
}

/** The value with every string, names of fields included, changed by `change`. */
export function mapStrings(value: Json, change: (text: string, key?: string) => string, key?: string): Json {
  if (typeof value === "string") return change(value, key);
  if (typeof value === "number" && Math.abs(value) >= TELLING_NUMBER) {
    const changed = change(String(value), key);
    return changed === String(value) ? value : changed;
  }
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map((item) => mapStrings(item, change, key));
  const out: JsonObject = {};
  for (const name of Object.keys(value)) {
    let changed = change(name);
    // Two names may become the same; both entries are kept.
    for (let n = 2; Object.hasOwn(out, changed) || changed === "__proto__"; n++)
      changed = `${change(name)}#${n}`;
    out[changed] = mapStrings(value[name]!, change, name);
  }
  return out;
}

/** The value without credentials and, when asked, without personal data. */
export function redactJson(value: Json, options: { pii: boolean }): Json {
  const change = (text: string, key?: string) => {
    const safe = redactSecrets(text, key);
    return options.pii ? redactPii(safe, key) : safe;
  };
  return mapStrings(value, change);
}
