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

  it.each(["{a", "a}", "{a,b}".repeat(12)])("refuses %s", (pattern) => {
    expect(() => compileGlob(pattern)).toThrow(/^glob /);
  });

  it("knows the literal start of a pattern", () => {
    expect(compileGlob("{crm.get,mail.*}").prefixes).toEqual([
      { prefix: "crm.get", exact: true },
      { prefix: "mail.", exact: false },
    ]);
  });
});
