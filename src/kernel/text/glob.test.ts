import { describe, expect, it } from "vitest";
import { compileGlob, globMatches } from "./glob.ts";

describe("globs", () => {
  it.each([
    ["*", "", true],
    ["*", "a.b/c", true],
    ["crm.*", "crm.a.b", true],
    ["crm.*", "crm", false],
    ["crm.?et", "crm.get", true],
    ["crm.?et", "crm.et", false],
    ["{crm,mail}.*", "mail.send", true],
    ["{crm,mail}.*", "pay.send", false],
    ["a{b,c{d,e}}f", "acef", true],
    ["a{b,c{d,e}}f", "abf", true],
    ["a{b,c{d,e}}f", "acf", false],
    ["*a*b", "xaxb", true],
    ["*a*b", "xb", false],
    ["ab*ba", "aba", false],
    ["[x]", "x", false],
    ["[x]", "[x]", true],
    ["a.b", "axb", false],
    ["delete_user", "delete_user ", false],
    ["!x", "y", false],
  ])("%s on %j is %s", (pattern, text, wanted) => {
    expect(globMatches(pattern, text)).toBe(wanted);
  });

  it("stays fast on patterns that stall regular expressions", () => {
    expect(globMatches(`${"*a".repeat(200)}b`, "a".repeat(5_000))).toBe(false);
  });

  it.each([
    ['"{" without "}"', "{a"],
    ['"}" without "{"', "a}"],
    ["too many alternatives", "{a,b}".repeat(12)],
    ["too many alternatives", `${"x".repeat(1_900)}${"{a,b}".repeat(9)}`],
    ['"{" without "}"', `{${"a,".repeat(1_000)}}`.slice(0, 1_999)],
    ["braces nested more than 10 deep", "{".repeat(1_000) + "}".repeat(1_000)],
    ["longer than 2000 characters", "*".repeat(2_001)],
  ])("refuses what is wrong: %s", (why, pattern) => {
    expect(() => compileGlob(pattern)).toThrow(why);
  });

  it("says how a long one begins, and no more", () => {
    expect(() => compileGlob("a".repeat(900_000))).toThrow(
      /^glob "a{100}\.\.\.": longer than 2000 characters$/,
    );
  });

  it("takes braces around nothing, and a comma outside of braces", () => {
    expect(globMatches("a{}b{,c}{{{d}}},e", "abcd,e")).toBe(true);
    expect(globMatches("a{}b{,c}{{{d}}},e", "abd,e")).toBe(true);
    expect(globMatches("a{}b{,c}{{{d}}},e", "ab,e")).toBe(false);
  });

  it("knows the literal start of a pattern", () => {
    expect(compileGlob("{crm.get,mail.*}").prefixes).toEqual([
      { prefix: "crm.get", exact: true },
      { prefix: "mail.", exact: false },
    ]);
  });
});
