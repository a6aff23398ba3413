/** Masking the values that a manifest names, wherever a call is written down or shown. */
import type { Json, JsonObject } from "../kernel/json.ts";
import { type Path, readKeys, tryPath } from "../kernel/paths.ts";
import { plural } from "../kernel/words.ts";
import type { Finder } from "./detect/hit.ts";

const REDACTED = "[REDACTED]";
/** A mask wherever it stands, that of a credential too, which says of what kind it was. */
const MASK = /\[(REDACTED(?::[a-z0-9_]+)?)(?:, [\d,]+ characters?)?\]/g;
const WHOLE_MASK = new RegExp(`^${MASK.source}$`);
export const findMasks: Finder = (text) =>
  Array.from(text.matchAll(MASK), ({ 0: { length }, index }) => ({
    kind: "mask",
    start: index,
    end: index + length,
  }));

export const hasMask = (text: string): boolean => text.search(MASK) >= 0;

/** The mask on a card: it also says how long the hidden text is. */
export function sizedMask(characters: number, kind?: string): string {
  const name = kind === undefined ? "REDACTED" : `REDACTED:${kind}`;
  return `[${name}, ${plural(characters, "character")}]`;
}

/** Hides a value on a card. One that is a mask already stays as it is. */
export function sizedMaskOf(value: Json): Json {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return WHOLE_MASK.test(text) ? value : sizedMask(text.length);
}

/** A copy whose masks are written as everywhere outside a card, without the length. */
export function withPlainMasks(value: Json): Json {
  if (typeof value === "string") return hasMask(value) ? value.replace(MASK, "[$1]") : value;
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map(withPlainMasks);
  const out: JsonObject = {};
  for (const name of Object.keys(value)) out[name] = withPlainMasks(value[name]!);
  return out;
}

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
export function maskExcept(
  value: Json,
  hidden: readonly Keys[],
  shown: readonly Keys[],
  mask: (value: Json) => Json = () => REDACTED,
): Json {
  if (hidden.length === 0) return value;
  const walk = (here: Json, at: Keys): Json => {
    const covers = (keys: Keys) => isPrefix(keys, at);
    if (shown.some(covers)) return here;
    const masked = hidden.some(covers);
    const below = (keys: Keys) => keys.length > at.length && isPrefix(at, keys);
    if (masked && !shown.some(below)) return mask(here);
    if (!masked && !hidden.some(below)) return here;
    if (here === null || typeof here !== "object") return masked ? mask(here) : here;
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
  const hidden = keys.some((_, n) => {
    const above = readKeys(value, keys.slice(0, n));
    return typeof above === "string" && WHOLE_MASK.test(above);
  });
  return hidden ? REDACTED : undefined;
}

export function isPrefix(short: Keys, long: Keys): boolean {
  return short.length <= long.length && short.every((key, i) => String(key) === String(long[i]));
}

/** The filled template, masked wherever it took its value from a hidden path; for a card. */
export function maskFilled(template: Json, filled: Json, hidden: readonly Path[]): Json {
  if (hidden.length === 0) return filled;
  if (typeof template === "string") {
    const path = tryPath(template);
    if (path === undefined) return filled;
    const same = hidden.filter(({ root }) => root === path.root).map(({ keys }) => keys);
    if (same.some((keys) => isPrefix(keys, path.keys))) return sizedMaskOf(filled);
    const below = same
      .filter((keys) => isPrefix(path.keys, keys))
      .map((keys) => keys.slice(path.keys.length));
    return maskExcept(filled, below, [], sizedMaskOf);
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
