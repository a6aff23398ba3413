import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { verifies } from "../../test/support/verifies.ts";
import { clipText } from "../kernel/text/phrases.ts";
import { consoleLinks } from "./links.ts";
import { defuseTags, defuseText, joinList, plainLine } from "./safe-text.ts";

describe("text", () => {
  it("is one visible line", () => {
    expect(plainLine("a\r\n\tb\u0000c\u2028d")).toBe("a b c d");
    expect(plainLine("\u202eabc\u202c \u200b\u2060\ufeffd\u{e0041}")).toBe("abc d");
    expect(plainLine("x\ud800y")).toBe("x\ufffdy");
    expect(plainLine("naïve 日本 👍")).toBe("naïve 日本 👍");
  });

  it("is cut between characters", () => {
    expect(clipText("abcdef", 4)).toBe("abc…");
    expect(clipText("ab👍cd", 4)).toBe("ab…");
    expect(plainLine("x".repeat(400))).toHaveLength(300);
  });

  it("has no mentions and no links, and stays readable", () => {
    expect(defuseText("@here see https://a.example and www.b.example, mail x@y")).toBe(
      "＠here see https[:]//a.example and www[.]b.example, mail x＠y",
    );
    expect(defuseTags("<!channel>")).toBe("‹!channel›");
    expect(defuseText("crm.create_contact run_01-a.b")).toBe("crm.create_contact run_01-a.b");
  });

  it("holds for any text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 600 }), (text) => {
        const out = defuseTags(text);
        expect(out.length).toBeLessThanOrEqual(300);
        expect(out).not.toMatch(/[@<>\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e]|:\/\/|www\./i);
      }),
    );
  });

  it("shortens lists", () => {
    expect(joinList([])).toBe("none");
    expect(joinList(["a", "b"])).toBe("a, b");
    expect(joinList(["a", "b", "c", "d"], 2)).toBe("a, b and 2 more");
  });
});

describe("console links", () => {
  it("stand on either base", () => {
    verifies("ops.channel.console-url");
    for (const base of [
      "https://s.example",
      "https://s.example/",
      "https://s.example/console",
      "https://s.example/console/",
    ]) {
      expect(consoleLinks(base).run("run_1")).toBe("https://s.example/console/runs/run_1");
    }
    expect(consoleLinks("https://s.example/gov").alerts()).toBe("https://s.example/gov/console/alerts");
    expect(consoleLinks(null).alerts()).toBe(null);
    expect(consoleLinks("https://s.example").approval("a|b>c")).toBe(
      "https://s.example/console/approvals/a%7Cb%3Ec",
    );
  });
});
