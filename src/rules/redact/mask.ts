/** Masks the values that a manifest redacts, in records and on cards. */
import type { JsonObject, JsonValue } from "../../kernel/json/json.ts";
import { readKeys, tryPath, type ValuePath } from "../../kernel/paths.ts";
import type { PausableWork } from "../../kernel/pausable-work.ts";
import { formatCountOf } from "../../kernel/text/phrases.ts";
import type { HitFinder } from "../detect/hits.ts";
import { changingJson } from "../detect/json.ts";

const REDACTED = "[REDACTED]";
/** Matches any mask, including credential masks, which name the kind of credential. */
const MASK = /\[(REDACTED(?::[a-z0-9_]+)?)(?:, [\d,]+ characters?(?:, with other text)?)?\]/g;
const WHOLE_MASK = new RegExp(`^${MASK.source}$`);
export const findMasks: HitFinder = (text) =>
  Array.from(text.matchAll(MASK), ({ 0: { length }, index }) => ({
    kind: "mask",
    start: index,
    end: index + length,
  }));

export const hasMask = (text: string): boolean => text.search(MASK) >= 0;

/** Mask on a card, which also gives the length of the hidden text. */
export function sizedMask(characters: number, kind?: string): string {
  const name = kind === undefined ? "REDACTED" : `REDACTED:${kind}`;
  return `[${name}, ${formatCountOf(characters, "character")}]`;
}

const KEY_FRAME = /-----(?:BEGIN|END) [A-Z0-9 ]{1,60}-----|^[A-Za-z-]{1,40}: [^\r\n]{0,200}$|\\[nr]/gm;
const SHELL = /[\s`$(){}<>;|&\\]/;

/**
 * Mask of a credential on a card. Says if the hidden text is not only a credential, because an agent could put a
 * command into the form of one.
 */
export function credentialMask(kind: string, hidden: string): string {
  const plain = sizedMask(hidden.length, kind);
  return isOnlyCredential(kind, hidden) ? plain : `${plain.slice(0, -1)}, with other text]`;
}

function isOnlyCredential(kind: string, hidden: string): boolean {
  if (kind !== "private_key") return !SHELL.test(hidden);
  const lines = hidden.replace(KEY_FRAME, "\n").split("\n");
  return lines.every((line) => /^[A-Za-z0-9+/]*={0,2}$/.test(line.trim()));
}

/** Masks a value on a card. A value that is already a mask stays unchanged. */
export function sizedMaskOf(value: JsonValue): JsonValue {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return WHOLE_MASK.test(text) ? value : sizedMask(text.length);
}

/** Copies a value with the masks as used outside cards, without the length. */
export function* withPlainMasks(value: JsonValue): PausableWork<JsonValue> {
  return yield* changingJson(value, {
    leaf: (one) => (typeof one === "string" && hasMask(one) ? one.replace(MASK, "[$1]") : one),
    name: (name) => name,
    within: (name) => name,
  });
}

type Keys = readonly (string | number)[];

/** Copies a value with the part at the path masked. Undefined if the path does not exist. */
export function maskAt(here: JsonValue | undefined, keys: Keys): JsonValue | undefined {
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

/** Masks everything under `hidden`, except for everything under `shown`. */
export function maskExcept(
  value: JsonValue,
  hidden: readonly Keys[],
  shown: readonly Keys[],
  mask: (value: JsonValue) => JsonValue = () => REDACTED,
): JsonValue {
  if (hidden.length === 0) return value;
  const walk = (here: JsonValue, at: Keys): JsonValue => {
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

/** Reads a path in a masked value. A path below a mask returns the mask. */
export function readMasked(value: JsonValue | undefined, keys: Keys): JsonValue | undefined {
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

/** Masks the parts of a filled template that come from a hidden path, for a card. */
export function maskFilled(template: JsonValue, filled: JsonValue, hidden: readonly ValuePath[]): JsonValue {
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

function isObject(value: JsonValue): value is JsonObject {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}
