import canonicalize from "canonicalize";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SvcError } from "../errors.ts";
import { toCanonicalJson } from "./canonical.ts";
import { assertJson, type JsonValue, parseJson, parseJsonBytes } from "./json.ts";

describe("parseJson", () => {
  it("reads what JSON.parse reads", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
        const text = JSON.stringify(value);
        if (/(?:^|[^\d.])-?\d{16,}/.test(text) || text.includes('"__proto__"') || /e\+/.test(text)) return;
        expect(parseJson(text)).toEqual(JSON.parse(text, (_, part: unknown) => (part === 0 ? 0 : part)));
      }),
      { numRuns: 300 },
    );
  });

  it.each([
    ['{"a":1,"a":2}', "duplicate key"],
    ['{"a":1,"\\u0061":2}', "duplicate key"],
    ['{"__proto__":{}}', "__proto__"],
    ["9007199254740993", "2^53"],
    ["1e400", "too large"],
    ["1e300", "2^53"],
    ['"\\ud800"', "surrogate"],
    ['"\ud800"', "surrogate"],
    ["", "empty"],
    ["[1,]", "unexpected"],
    ["{,}", "key"],
    ["01", "after the value"],
    ["nul", "unexpected"],
    ['"a\nb"', "control character"],
    ['"abc', "unterminated"],
    ['"\\x"', "escape"],
    ["[".repeat(65) + "]".repeat(65), "deeper than 64"],
    ["[".repeat(500_000), "deeper than 64"],
    ["\ufeff{}", "unexpected"],
    ["{} x", "after the value"],
    ["NaN", "unexpected"],
    ["'a'", "unexpected"],
  ])("refuses %j", (text, why) => {
    expect(() => parseJson(text)).toThrow(SvcError);
    expect(() => parseJson(text)).toThrow(why);
  });

  it("takes 64 levels, and -0 as 0", () => {
    expect(() => parseJson("[".repeat(64) + "]".repeat(64))).not.toThrow();
    expect(Object.is(parseJson("-0"), 0)).toBe(true);
  });

  it("keeps a member named constructor as a plain member", () => {
    const value = parseJson('{"constructor":1,"toString":2}') as Record<string, JsonValue>;
    expect(value["constructor"]).toBe(1);
    expect(Object.keys(value)).toEqual(["constructor", "toString"]);
  });

  it.each([
    [Buffer.from([0xff, 0xfe, 0x7b, 0x00]), "UTF-8"],
    [Buffer.from([0xef, 0xbb, 0xbf, 0x7b, 0x7d]), "unexpected"],
    [Buffer.from([0x22, 0xc3, 0x28, 0x22]), "UTF-8"],
  ])("refuses bytes that are not plain UTF-8 JSON", (bytes, why) => {
    expect(() => parseJsonBytes(bytes)).toThrow(why);
  });
});

describe("canonical", () => {
  it("agrees with the canonicalize package on every value that may be read", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
        try {
          assertJson(value, "value");
        } catch {
          return;
        }
        expect(toCanonicalJson(value as JsonValue)).toBe(canonicalize(value));
      }),
      { numRuns: 500 },
    );
  });

  it("sorts by UTF-16 code units and prints numbers as ECMAScript does", () => {
    expect(toCanonicalJson({ "\u20ac": 1, "\r": 2, "1": 3, "\ud83d\ude00": 4, ö: 5, a: 1e21 / 10 })).toBe(
      '{"\\r":2,"1":3,"a":100000000000000000000,"ö":5,"€":1,"😀":4}',
    );
  });

  it("sorts the members of an object however many there are", () => {
    for (const count of [2, 16, 17, 100]) {
      const object = Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${(i * 37) % 101}`, i]));
      expect(toCanonicalJson(object)).toBe(canonicalize(object));
    }
  });
});

describe("assertJson", () => {
  it.each([[undefined], [Number.NaN], [1n], [new Date(0)], [() => 1], [2 ** 53], ["\ud800"], [new Map()]])(
    "refuses %s",
    (value) => {
      expect(() => assertJson({ x: [value] }, "args")).toThrow(/^args: /);
    },
  );
});
