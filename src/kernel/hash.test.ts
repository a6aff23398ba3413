import { createHmac } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { hmacHex } from "./hash.ts";

const expected = (key: string, data: string) => createHmac("sha256", key).update(data).digest("hex");

describe("a keyed hash", () => {
  it("is HMAC-SHA-256 for every key and text", () => {
    const text = fc.string({ unit: "grapheme", maxLength: 80 });
    fc.assert(fc.property(text, text, (key, data) => hmacHex(key, data) === expected(key, data)));
  });

  it("agrees if a key fills its block, and if a text is long", () => {
    for (const key of [63, 64, 65, 200]
      .map((length) => "k".repeat(length))
      .concat("ü".repeat(32), "€".repeat(22)))
      for (const data of ["", "x".repeat(1_024), "x".repeat(1_025), "€".repeat(1_024)])
        expect(hmacHex(key, data)).toBe(expected(key, data));
  });

  it("owes nothing to the one before it", () => {
    const long = hmacHex("a long key".repeat(6), "a long text".repeat(90));
    expect(hmacHex("k", "t")).toBe(expected("k", "t"));
    expect(hmacHex("a long key".repeat(6), "a long text".repeat(90))).toBe(long);
  });
});
