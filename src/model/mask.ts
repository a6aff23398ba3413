/** Masking the values that a manifest names, wherever a call is written down or shown. */
import type { Json, JsonObject } from "../kernel/json.ts";
import { type Path, readKeys, tryPath } from "../kernel/paths.ts";
import type { Finder } from "./detect/hit.ts";

const REDACTED = "[REDACTED]";
/** A mask wherever it stands, that of a credential too, which says of what kind it was. */
const MASK = /\[REDACTED(?::[a-z0-9_]+)?\]/g;
export const findMasks: Finder = (text) =>
  Array.from(text.matchAll(MASK), ({ 0: { length }, index }) => ({
    kind: "mask",
    start: index,
    end: index + length,
  }));

type Keys = readonly (string | number)[];

/** A copy with the value at the path masked; undefined where the path leads nowhere. */
export function maskAt(here: Json | undefined, keys: Keys): Json | undefined {
  const [key, ...rest] = keys;
  if (key === undefined) return here === undefined ? undefined : REDACTED;
  if (here === null || typeof here !== "object") return undefined;
  if (Array.isArray(here)) {
    const inner = typeof key === "number" ? maskAt(here[key], rest) : undefined;
    return inner === undefined ? undefined : here.with(key as number, inner);
  }
  const name = String(key);
  const inner = Object.hasOwn(here, name) ? maskAt(here[name], rest) : undefined;
  return inner === undefined ? undefined : { ...here, [name]: inner };
}

/** Masks what lies under `hidden`, but for what lies under `shown`. */
export function maskExcept(value: Json, hidden: readonly Keys[], shown: readonly Keys[]): Json {
  if (hidden.length === 0) return value;
  const walk = (here: Json, at: Keys): Json => {
    const covers = (keys: Keys) => isPrefix(keys, at);
    if (shown.some(covers)) return here;
    const masked = hidden.some(covers);
    const below = (keys: Keys) => keys.length > at.length && isPrefix(at, keys);
    if (masked && !shown.some(below)) return REDACTED;
    if (!masked && !hidden.some(below)) return here;
    if (here === null || typeof here !== "object") return masked ? REDACTED : here;
    if (Array.isArray(here)) return here.map((item, i) => walk(item, [...at, i]));
    const out: JsonObject = {};
    for (const name of Object.keys(here)) out[name] = walk(here[name]!, [...at, name]);
    return out;
  };
  return walk(value, []);
}

/** What lies there as far as it may be shown: of what lies below a masked value the mask is the answer. */
export function readShown(value: Json | undefined, keys: Keys): Json | undefined {
  const found = readKeys(value, keys);
  if (found !== undefined) return found;
  return keys.some((_, n) => readKeys(value, keys.slice(0, n)) === REDACTED) ? REDACTED : undefined;
}

export function isPrefix(short: Keys, long: Keys): boolean {
  return short.length <= long.length && short.every((key, i) => String(key) === String(long[i]));
}

/** The filled template, masked wherever it took its value from a hidden path. */
export function maskFilled(template: Json, filled: Json, hidden: readonly Path[]): Json {
  if (hidden.length === 0) return filled;
  if (typeof template === "string") {
    const path = tryPath(template);
    if (path === undefined) return filled;
    const same = hidden.filter(({ root }) => root === path.root).map(({ keys }) => keys);
    if (same.some((keys) => isPrefix(keys, path.keys))) return REDACTED;
    const below = same
      .filter((keys) => isPrefix(path.keys, keys))
      .map((keys) => keys.slice(path.keys.length));
    return maskExcept(filled, below, []);
  }
  if (Array.isArray(template) && Array.isArray(filled))
    return filled.map((item, i) =>
      template[i] === undefined ? item : maskFilled(template[i], item, hidden),
    );
  if (isObject(template) && isObject(filled)) {
    const out: JsonObject = {};
    for (const name of Object.keys(filled)) {
      const inner = Object.hasOwn(template, name) ? template[name] : undefined;
      out[name] = inner === undefined ? filled[name]! : maskFilled(inner, filled[name]!, hidden);
    }
    return out;
  }
  return filled;
}

function isObject(value: Json): value is JsonObject {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}
