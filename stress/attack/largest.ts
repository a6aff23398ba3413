/**
 * The largest calls, plans and texts that the limits allow: values of about 1 MB in the shapes that cost most to read,
 * hash, check, compare and draw.
 */
import type { JsonObject, JsonValue } from "../../src/kernel/json/json.ts";
import { SERVICE_LIMITS } from "../../src/kernel/limits.ts";

/** Room in a body for all but the value itself. */
const ENVELOPE = 4_096;
export const LARGEST_BYTES = SERVICE_LIMITS.body_bytes - ENVELOPE;

const list = <T>(length: number, one: (i: number) => T): T[] =>
  Array.from({ length: Math.floor(length) }, (_, i) => one(i));
const upTo = (bytes: number, line: (i: number) => string): string => {
  const out: string[] = [];
  for (let i = 0, size = 0; ; i++) {
    const text = line(i);
    size += Buffer.byteLength(JSON.stringify(text)) - 2;
    if (size > bytes) return out.join("");
    out.push(text);
  }
};

function nested(depth: number, inner: JsonValue): JsonValue {
  let value = inner;
  for (let i = 0; i < depth; i++) value = i % 2 === 0 ? [value] : { a: value };
  return value;
}

/** Arguments of about that many bytes, by their shape. */
export const LARGEST_ARGS: Readonly<Record<string, (bytes: number) => JsonObject>> = {
  "one text": (bytes) => ({ text: "a".repeat(bytes) }),
  "one text of prose": (bytes) => ({ text: upTo(bytes, (i) => `word${i % 977} and, `) }),
  "one text of short lines": (bytes) => ({ text: upTo(bytes, () => "a\n") }),
  "one text of hints at secrets": (bytes) => ({
    text: upTo(bytes, (i) => `password=${i} api_key: "k${i}" `),
  }),
  "one text of addresses": (bytes) => ({
    text: upTo(bytes, (i) => `p${i}@example.org +49 30 ${1_000_000 + i} `),
  }),
  "one text of controls": (bytes) => ({ text: upTo(bytes, () => "\u0007") }),
  "a number with many zeros": (bytes) => ({ amount: `1.${"0".repeat(bytes)}1` }),
  "a key with many digits": (bytes) => ({ [`${"0".repeat(bytes)}a`]: "v" }),
  "an address with many slashes": (bytes) => ({ text: upTo(bytes, () => `http://a/${"/".repeat(1_900)}b `) }),
  "short strings": (bytes) => ({ list: list(bytes / 5.5, () => "aa") }),
  "different strings": (bytes) => ({ list: list(bytes / 10, (i) => `s${i}`) }),
  numbers: (bytes) => ({ list: list(bytes / 8, (i) => 1_000_000 + i) }),
  keys: (bytes) => Object.fromEntries(list(bytes / 13, (i) => [`k${i}`, "v"])),
  "keys that name secrets": (bytes) =>
    Object.fromEntries(list(bytes / 30, (i) => [`password_${i}`, `v${i}`])),
  "keys that are secrets": (bytes) =>
    Object.fromEntries(
      list(bytes / 29, (i) => [`AKIA${(i + 60_466_176).toString(36).toUpperCase().padStart(16, "A")}`, "v"]),
    ),
  "objects in a list": (bytes) => ({ list: list(bytes / 8, () => ({ a: 1 })) }),
  "deep nesting": (bytes) => ({ list: list(bytes / 240, () => nested(56, "a")) }),
};

const lines = (count: number, line: (i: number) => string): string => list(count, line).join("\n");

/** Two texts of about that many bytes together, whose comparison costs most. */
export const LARGEST_PAIRS: Readonly<Record<string, (bytes: number) => [string, string]>> = {
  "nothing in common": (bytes) => {
    const count = bytes / 2 / 10;
    return [lines(count, (i) => `a${i}`), lines(count, (i) => `b${i}`)];
  },
  "every other line": (bytes) => {
    const count = bytes / 2 / 9;
    return [lines(count, (i) => `l${i}`), lines(count, (i) => (i % 2 === 0 ? `l${i}` : `m${i}`))];
  },
  reversed: (bytes) => {
    const count = Math.floor(bytes / 2 / 9);
    return [lines(count, (i) => `l${i}`), lines(count, (i) => `l${count - i}`)];
  },
  "two words at random": (bytes) => {
    let state = 7;
    const word = () => {
      state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
      return state % 3 === 0 ? "a" : "b";
    };
    return [lines(bytes / 6, word), lines(bytes / 6, word)];
  },
};
