/** Mutations: small hostile changes to inputs that were valid. All of them follow from fast-check's choices. */
import fc from "fast-check";
import type { JsonObject, JsonValue } from "../../src/kernel/json/json.ts";

/** Values that have broken parsers and comparisons before. */
export const HOSTILE_VALUES: readonly JsonValue[] = [
  null,
  true,
  "",
  " ",
  0,
  -1,
  0.1,
  1e-308,
  2 ** 53 - 1,
  [],
  {},
  [[[[]]]],
  "\u0000",
  "\u202e",
  "__proto__",
  "constructor",
  "../../etc/passwd",
  "x".repeat(3_000),
  { __proto__x: 1, toString: 1, constructor: { prototype: 1 } },
  Array.from({ length: 300 }, (_, i) => i),
  "2026-02-30T00:00:00Z",
  "9".repeat(400),
  "(a+)+$",
  "$args.__proto__.x",
  "*".repeat(200),
  "🙂".repeat(50),
];

/** Pieces of text that no serializer would write. */
const RAW_PIECES: readonly string[] = [
  '"__proto__":{"a":1},',
  '"a":1,"a":2,',
  "9007199254740993",
  "1e400",
  "-0",
  "01",
  "NaN",
  '"\\ud800"',
  '"\\u0000"',
  "\u0000",
  "\ufeff",
  "[".repeat(70),
  "{",
  "}",
  "]",
  ",",
  ":",
  '"',
  "\\",
  "//",
  "\u007f",
  "é",
  "\n",
];

const YAML_PIECES: readonly string[] = [
  ..."[]{}:-?&*!|>'\"#%@`,\n\t\0~".split(""),
  "- ",
  ": ",
  "*a",
  "&a ",
  "!!js/function ",
  "<<: *a",
  "---\n",
  "%YAML 1.1\n---\n",
  "__proto__: ",
  "1e999",
  ".inf",
  "9007199254740993",
  "0x7f",
  "yes",
  "\u200b",
  "\ud800",
  "$args.",
  `$${"{HOME}"}`,
  "  ",
  "(?=a)",
  "2026-13-45",
  "[".repeat(60),
];

/** Null, and once in `n` and one times the other. */
export const rarely = <T>(arbitrary: fc.Arbitrary<T>, n: number): fc.Arbitrary<T | null> =>
  fc.oneof({ weight: n, arbitrary: fc.constant(null) }, { weight: 1, arbitrary });

export interface Edit {
  at: number;
  cut: number;
  put: string;
}

const edits = (pieces: readonly string[], most: number) =>
  fc.array(
    fc.record<Edit>({
      at: fc.nat(100_000),
      cut: fc.nat(12),
      put: fc.oneof(
        { weight: 8, arbitrary: fc.constantFrom(...pieces) },
        { weight: 1, arbitrary: fc.string({ maxLength: 6 }) },
      ),
    }),
    { minLength: 1, maxLength: most },
  );

export function edited(text: string, list: readonly Edit[]): string {
  return list.reduce((now, { at, cut, put }) => {
    const i = at % (now.length + 1);
    return now.slice(0, i) + put + now.slice(i + cut);
  }, text);
}

export const yamlFrom = (texts: readonly string[]) =>
  fc.tuple(fc.constantFrom(...texts), edits(YAML_PIECES, 4)).map(([text, list]) => edited(text, list));

export const textFrom = (texts: readonly string[]) =>
  fc.tuple(fc.constantFrom(...texts), edits(RAW_PIECES, 3)).map(([text, list]) => edited(text, list));

/** Any JSON, small. */
const anyJson = fc.jsonValue({ maxDepth: 3 }).map((value) => value as JsonValue);
const hostile = fc.oneof(
  { weight: 9, arbitrary: fc.constantFrom(...HOSTILE_VALUES) },
  { weight: 1, arbitrary: anyJson },
);

interface Change {
  at: number;
  way: "replace" | "remove" | "add" | "rename";
  value: JsonValue;
  name: string;
}

const changes = fc.array(
  fc.record<Change>({
    at: fc.nat(10_000),
    way: fc.constantFrom("replace", "replace", "remove", "add", "rename"),
    value: hostile,
    name: fc.oneof(
      fc.constantFrom("__proto__", "constructor", "id", "run_id", "extra", "\u0000", ""),
      fc.string({ maxLength: 8 }),
    ),
  }),
  { minLength: 0, maxLength: 2 },
);

/** A valid object changed in a few places, and then perhaps its text too. */
export const jsonTextFrom = (bodies: readonly JsonObject[]) =>
  fc.tuple(fc.constantFrom(...bodies), changes, rarely(edits(RAW_PIECES, 2), 2)).map(([body, list, raw]) => {
    const changed = structuredClone(body) as JsonValue;
    const text = JSON.stringify(list.reduce(applied, changed));
    return raw === null ? text : edited(text, raw);
  });

function applied(root: JsonValue, { at, way, value: given, name }: Change): JsonValue {
  // A copy: the same hostile value may be put in two places, and then into itself.
  const value = typeof given === "object" ? structuredClone(given) : given;
  const places: [holder: JsonValue[] | JsonObject, key: string | number][] = [];
  collect(root, places);
  if (places.length === 0) return value;
  const [holder, key] = places[at % places.length]!;
  if (Array.isArray(holder)) {
    if (way === "remove") holder.splice(Number(key), 1);
    else holder[Number(key)] = value;
    return root;
  }
  if (way === "remove" || way === "rename") {
    const old = holder[key]!;
    delete holder[key];
    if (way === "rename") define(holder, name, old);
  } else define(holder, way === "add" ? name : String(key), value);
  return root;
}

/** Also where the name is `__proto__`: then the text has that key, and a sloppy reader a poisoned object. */
function define(holder: JsonObject, name: string, value: JsonValue): void {
  Object.defineProperty(holder, name, { value, enumerable: true, configurable: true, writable: true });
}

function collect(value: JsonValue, into: [JsonValue[] | JsonObject, string | number][]): void {
  if (typeof value !== "object" || value === null) return;
  for (const key of Object.keys(value)) {
    into.push([value, key]);
    collect((value as JsonObject)[key]!, into);
  }
}
