import { RE2JS } from "re2js";
import { describe, expect, it } from "vitest";
import { verifies } from "../../../test/support/verifies.ts";
import { compilePattern, patternProblem, patternWeight } from "./pattern.ts";

describe("patterns of policy authors", () => {
  it("answer like RE2: anywhere in the text, unless anchored", () => {
    expect(compilePattern("b+").test("abbc")).toBe(true);
    expect(compilePattern("^b").test("abbc")).toBe(false);
    expect(compilePattern("(?i)DROP").test("drop")).toBe(true);
    expect(compilePattern("^ü.$").test("ü😀")).toBe(true);
  });

  it("do not stall on what makes other engines stall", () => {
    verifies("contract.policy.linear-regex");
    const from = process.cpuUsage().user;
    expect(compilePattern("^(a+)+$").test(`${"a".repeat(500_000)}b`)).toBe(false);
    expect(compilePattern("(x+x+)+y").test("x".repeat(500_000))).toBe(false);
    expect((process.cpuUsage().user - from) / 1_000).toBeLessThan(2_000);
  });

  it("cannot be tested against texts that would cost too much", () => {
    const costly = compilePattern("a[ab]{900}[cd]");
    expect(costly.test("ab".repeat(100))).toBe(false);
    expect(costly.test("ab".repeat(10_000))).toBeUndefined();
    expect(compilePattern("(?i)drop table").test("x".repeat(1_000_000))).toBe(false);
  });

  it("name their problem", () => {
    expect(patternProblem("ok+")).toBeNull();
    expect(patternProblem("(?!x)y")).toContain("linear-time subset");
    expect(patternProblem(`${"(".repeat(400)}a${")".repeat(400)}`)).toBeNull();
    expect(patternProblem("x".repeat(1_001))).toContain("longer than");
    expect(patternProblem("(?:a{30}b{30}){30}c{900}")).toContain("repeats too much");
  });

  it("weigh more with Unicode classes", () => {
    expect(patternWeight("\\p{L}")).toBeGreaterThan(patternWeight("[a-z]"));
  });

  it.each([
    ["abc", 3],
    ["a{5}", 5],
    ["x[a-z]{100}y", 102],
    ["(a{30}){30}", 961],
    ["(?:ab|c){2,10}", 81],
    ["a{9}b{9}c{9}", 27],
    ["\\{9}", 4],
    ["a{3,}", 5],
    ["((((a{9}){9}){9}){9}){9}", 50_000],
  ])("%s weighs about its program: %i", (source, weight) => {
    expect(patternWeight(source)).toBe(weight);
  });

  it("weigh about what their programs are", () => {
    for (const source of [
      "(a{30}){30}",
      "(ab|cd)?x",
      "^[a-z]+@example\\.com$",
      "(?:a{3,5}){7}",
      "(a{99}){10}",
    ]) {
      const size = RE2JS.compile(source).programSize();
      expect(patternWeight(source)).toBeGreaterThan(size / 3);
      expect(patternWeight(source)).toBeLessThan(size * 3);
    }
  });
});
