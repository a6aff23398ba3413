import { describe, expect, it } from "vitest";
import { verifies } from "../../../test/support/verifies.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { removeCallValues, WITHHELD_TEXT } from "./remove-values.ts";

const SECRET = 'Hunter2 of "Zoë" & Co/ÄÖ';
const TEXT = "a reasonably long text that an upstream cuts in the middle of it";

describe("values that an error echoes", () => {
  it.each([
    ["as they are", "cannot find Jane", ["Jane"], "cannot find [argument]"],
    ["in another case", "CANNOT FIND JANE or jane", ["Jane"], "CANNOT FIND [argument] or [argument]"],
    ["inside a word", "no such file janedoe.txt", ["jane"], "no such file [argument]doe.txt"],
    ["short, alone", 'bad code "XK" in xk-7', ["xk"], 'bad code "[argument]" in [argument]-7'],
    ["short, beside digits", "row ab1 is gone", ["ab"], "row [argument]1 is gone"],
    ["of one letter", "no column x (X)", ["x"], "no column [argument] ([argument])"],
    [
      "as numbers",
      "row 42 of 7: id=42, row42, 42ms",
      [42],
      "row [argument] of 7: id=[argument], row[argument], [argument]ms",
    ],
    ["as numbers in texts", "page 7 of 42", ["42"], "page 7 of [argument]"],
    ["as money", "only 1,234,567.50 or 1.234.567,5 left", [1234567.5], "only [argument] or [argument] left"],
    ["with zeros", "7.00 is not 007", [7], "[argument] is not [argument]"],
    ["with a sign", "by -15 or 15", [-15], "by [argument] or [argument]"],
    ["grouped", "12 345 and 12'345 and 12_345", [12345], "[argument] and [argument] and [argument]"],
    ["in JSON", String.raw`{"name":"say \"hi\"\n"}`, ['say "hi"\n'], String.raw`{"name":"[argument]\n"}`],
    [
      "in JSON in JSON",
      String.raw`{\"name\":\"say \\\"hi\\\"\"}`,
      ['say "hi"'],
      String.raw`{\"name\":\"[argument]\"}`,
    ],
    ["in ASCII JSON", String.raw`"Zo\u00EB \u00c4"`, ["Zoë Ä"], '"[argument]"'],
    ["in a URL", "GET /q?n=Zo%C3%AB%20%2fx+y failed", ["Zoë /x y"], "GET /q?n=[argument] failed"],
    ["in HTML", "<b>Tom &amp; &quot;J&#233;&quot;</b>", ['Tom & "Jé"'], "<b>[argument]</b>"],
    ["decomposed", "no Zoe\u0308 here", ["Zoë"], "no [argument] here"],
    ["in capitals of two letters", "NO STRASSE 9", ["Straße"], "NO [argument] 9"],
    ["with other white space", "line one  line\ttwo", ["line one\nline two "], "[argument]"],
    ["without spaces between words", "用户田中不存在", ["田中"], "用户[argument]不存在"],
    ["as a picture", "cannot post 🎉", ["🎉"], "cannot post [argument]"],
    ["deep inside", "no such leaf", [{ a: [{ b: ["leaf"] }] }], "no such [argument]"],
    ["one after the other", "ab-cd abcdef", ["abcd", "cdef", "ab", "cd"], "[argument]-[argument] [argument]"],
  ] as const)("are taken out %s", (_how, error, args, clean) => {
    expect(removeCallValues(error, args as never)).toBe(clean);
  });

  it.each([
    ["These tools read UTF-8", [{ name: "Read", input: { mode: "read" } }]],
    ["the client reported no outcome", ["the"]],
    ["cannot write the file", ["write", "the file", "Edit"]],
  ])("are left where they are common words: %s", (error, args) => {
    verifies("beyond.errors.common-words");
    expect(removeCallValues(error, args as never)).toBe(error);
  });

  it.each(["no", "off", "denied", "Jane", "read Jane", "reader"])(
    "are taken out where they say something: %s",
    (value) => {
      verifies("beyond.errors.common-words");
      expect(removeCallValues(`it is ${value} there`, [value])).toBe("it is [argument] there");
    },
  );

  it.each([
    [`cannot read ${TEXT.slice(0, 30)}...`, "cannot read [argument]..."],
    [`input='${TEXT.slice(0, 20)}...${TEXT.slice(-20)}'`, "input='[argument]...[argument]'"],
    [`...${TEXT.slice(-25)} is too long`, "...[argument] is too long"],
  ])("are taken out in part: %s", (error, clean) => {
    expect(removeCallValues(error, [TEXT])).toBe(clean);
  });

  it("are found however long they are", () => {
    const long = `1.${"0".repeat(500_000)}1`;
    expect(removeCallValues("only 7 left", [long, 7])).toBe("only [argument] left");
    const lines = "a\n".repeat(500_000);
    expect(removeCallValues(`cannot read ${lines.slice(0, 40)}`, [lines])).toBe("cannot read[argument]");
  });

  it("are whole when the error is cut", () => {
    for (let part = 1; part < SECRET.length; part++) {
      const filler = ". ".repeat(SERVICE_LIMITS.error_read_chars / 2).slice(part);
      const clean = removeCallValues(`${filler}${SECRET}`, [SECRET, "Hunter2"]);
      expect(clean.slice(-20), String(part)).toMatch(/^[. ]+\[argument\]$/);
    }
  });

  it("leave an error readable", () => {
    const error =
      "TypeError: cannot read property 'id' of undefined at line 10, expected a text (HTTP/1.1 404)";
    const args = {
      a: "x",
      b: "e",
      n: 1,
      m: 0,
      flag: true,
      none: null,
      s: "-",
      t: ":",
      u: "",
      v: " ",
      w: "te",
    };
    expect(removeCallValues(error, args)).toBe(error);
    expect(removeCallValues("expected a number", ["a"])).toBe("expected [argument] number");
    expect(removeCallValues("127.0.0.1 refused v1.2.3", [1, 0, "2"])).toBe("127.0.0.1 refused v1.2.3");
    expect(removeCallValues("true, false and null are words", [true, false, null])).toBe(
      "true, false and null are words",
    );
    expect(removeCallValues("100% of 5% &c; \\q %zz %c3 done", ["other"])).toBe(
      "100% of 5% &c; \\q %zz %c3 done",
    );
  });

  it("are of every spelling that is found in the wild", () => {
    const spelled = [
      SECRET,
      SECRET.toUpperCase(),
      SECRET.toLowerCase(),
      JSON.stringify(SECRET),
      JSON.stringify(JSON.stringify(SECRET)),
      JSON.stringify(SECRET).replace(/[^ -~]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`),
      encodeURIComponent(SECRET),
      encodeURIComponent(SECRET).toLowerCase(),
      encodeURIComponent(encodeURIComponent(SECRET)),
      new URLSearchParams({ q: SECRET }).toString(),
      SECRET.replaceAll("&", "&amp;").replaceAll('"', "&quot;"),
      SECRET.normalize("NFD"),
    ];
    for (const text of spelled) {
      const clean = removeCallValues(`it failed: ${text} !`, { secret: SECRET });
      expect(clean, text).toMatch(/^it failed: (q=)?[\\"]*\[argument\][\\"]* !$/);
    }
  });

  it("are too many to look for: nothing of the error is kept", () => {
    const values = Array.from({ length: 20_001 }, (_, i) => `v${i}`);
    expect(removeCallValues("no v7", values.slice(1))).toBe("no [argument]");
    expect(removeCallValues("no v7", values)).toBe(WITHHELD_TEXT);
  });
});
