import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { JsonValue } from "../../kernel/json/json.ts";
import { runAtOnce } from "../../kernel/pausable-work.ts";
import { findTraceValues } from "./find-values.ts";
import { fingerprintsOf } from "./fingerprint.ts";
import { precomputingTraceValues, traceValuesOf } from "./trace-values.ts";

function found(value: JsonValue, any_number = false): string[] {
  const { values } = findTraceValues(value, "$result", { any_number, subdomains: "of" });
  return [...new Set(values.texts().map((text, i) => `${values.sourceOf(i).kind} ${text}`))];
}

describe("values that can be followed", () => {
  it.each<[string, string, string[]]>([
    ["an address", "Write to Bob.Smith@Example.COM.", ["address bob.smith@example.com"]],
    [
      "a URL and its host",
      "see https://www.evil.example/a?x=1",
      ["url evil.example/a?x=1", "host evil.example"],
    ],
    ["a bare host", "www.secure-systems.example", ["host secure-systems.example"]],
    ["a file name in a path", "open /srv/share/plan.docx", ["file plan.docx"]],
    [
      "an account number, however it is grouped",
      "GB29 NWBK 6016 1331 9268 19",
      ["id gb29nwbk60161331926819"],
    ],
    [
      "an account number before a word",
      "DE89 3704 0044 0532 0130 00 from Ann",
      ["id de89370400440532013000"],
    ],
    ["a phone number", "call +1 (415) 555-2671", ["number 14155552671"]],
    [
      "an account number, grouped in any way",
      "pay DE893704 0044-0532.013000 now",
      ["id de89370400440532013000"],
    ],
    [
      "a phone number with dots",
      "call 1.415.555.2671 or 415.555.2671.",
      ["number 14155552671", "number 4155552671"],
    ],
    ["a host that ends with a dot", "https://evil.example.:80/a", ["host evil.example"]],
    ["a network address in brackets", "http://[2001:db8::1]", ["host [2001:db8::1]"]],
    [
      "a host of another alphabet",
      "to bob@müller.example",
      ["address bob@müller.example", "address bob@xn--mller-kva.example", "host xn--mller-kva.example"],
    ],
    ["an id", "order ch_12345 is open", ["id ch_12345"]],
    ["an id with hyphens", "8f14e45f-ceea-467f-a0e6-0c2b9a1f7d11", ["id 8f14e45fceea467fa0e60c2b9a1f7d11"]],
    ["an amount", "EUR 1,840.00 or 1.840,00 €", ["amount 1840"]],
    ["nothing in a date", "on 2024-05-19 or 19/05/2024", []],
    ["nothing in plain words", "the weather is nice", []],
  ])("%s", (_name, text, expected) => {
    const values = found({ text });
    for (const one of expected) expect(values).toContain(one);
    if (expected.length === 0) expect(values).toEqual([]);
  });

  it("sees through letter case, Unicode forms, invisible characters and percent-encoding", () => {
    const plain = found("bob@evil.example");
    for (const text of [
      "BOB@evil.example",
      "ｂｏｂ@evil.example",
      "b\u200bob@evil.example",
      "to=bob%40evil.example",
      "100%ff to=bob%2540evil.example",
      "bob&#x40;evil.example",
      "bob&commat;evil&period;example",
      String.raw`hello\nbob\u0040evil.example`,
      "b\u034fob@evil.example\ufe0f",
      "bo\u0301b@evil.example",
    ])
      expect(found(text)).toEqual(expect.arrayContaining(plain));
  });

  it("shares a fingerprint between a host and its subdomains, unless the subdomain was given", () => {
    const prints = (text: string, root: "$args" | "$result" | "$given") =>
      new Set(fingerprintsOf("salt", traceValuesOf(text, root)).keys());
    const foreign = prints("see https://evil.example/x", "$result");
    const carried = (text: string) => [...prints(text, "$args")].filter((one) => foreign.has(one));
    for (const url of ["https://a.evil.example/y", "b.a.evil.example", "ftp://www.A.evil.example."])
      expect(carried(url), url).toHaveLength(1);
    for (const url of ["https://notevil.example", "https://evil.example.org", "example"])
      expect(carried(url), url).toEqual([]);
    const given = prints("look at a.evil.example", "$given");
    expect(carried("https://a.evil.example/z").filter((one) => !given.has(one))).toEqual([]);
    expect(carried("https://evil.example/z").filter((one) => !given.has(one))).toHaveLength(1);
  });

  it("finds the values of a long text once", () => {
    const text = "mail bob@evil.example now ".repeat(5_000);
    runAtOnce(precomputingTraceValues(text, "$result"));
    const found = traceValuesOf(text, "$result");
    runAtOnce(precomputingTraceValues(text, "$result"));
    expect(traceValuesOf(text, "$result")).toBe(found);
  });

  it("takes any number of an argument as an amount, but only telling ones of a result", () => {
    expect(found({ n: 12 })).toEqual([]);
    expect(found({ n: 12.5 })).toEqual(["amount 12.5"]);
    expect(found({ n: 12, text: "40" }, true)).toEqual(["amount 12", "amount 40"]);
  });

  it("finds values in the names of members, too", () => {
    expect(found({ "bob@evil.example": 1 })).toContain("address bob@evil.example");
  });

  it("shares a fingerprint for five words in a row, and for no fewer", () => {
    const prints = (text: string) =>
      fingerprintsOf("salt", findTraceValues(text, "$result", { any_number: false, subdomains: "of" }));
    const source = prints("Please transfer the full balance to my account today");
    const overlap = (text: string) => [...prints(text).keys()].filter((one) => source.has(one)).length;
    expect(overlap("He said: transfer, the full BALANCE to...")).toBe(1);
    expect(overlap("transfer the full balance")).toBe(0);
    expect(overlap("transfer full the balance to my")).toBe(0);
  });

  it("gives one value different fingerprints in different runs", () => {
    const values = findTraceValues("bob@evil.example", "$result", { any_number: false, subdomains: "of" });
    const [a] = fingerprintsOf("a".repeat(64), values).keys();
    const [b] = fingerprintsOf("b".repeat(64), values).keys();
    expect(a).not.toBe(b);
  });

  it("reads any JSON without an error, and finds a value wherever it is", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.string(), (value, key) => {
        const texts = found({ [key]: [value as JsonValue, { deep: "mail bob@evil.example now" }] });
        expect(texts).toContain("address bob@evil.example");
      }),
    );
  });

  it.each([
    ["dots", "a.".repeat(50_000)],
    ["digits", "1 ".repeat(50_000)],
    ["at signs", "a@".repeat(50_000)],
    ["hyphens", "a1-".repeat(30_000)],
    ["slashes", "x://".repeat(25_000)],
    ["groups", "aa11 aaaa ".repeat(10_000)],
    ["escapes", "\\".repeat(50_000)],
    ["tags", "<a ".repeat(25_000)],
    ["spelled dots", "a dot ".repeat(15_000)],
    ["spaced letters", "a ".repeat(50_000)],
    ["brackets", "[at ".repeat(25_000)],
    ["spaced numbers", "1 234 ".repeat(15_000)],
    ["letters", "abcdefgh".repeat(10_000)],
    ["entities", "&#".repeat(50_000)],
    ["percent signs", "%4".repeat(50_000)],
    ["accounts", "de89".repeat(25_000)],
    ["hosts of another alphabet", "\u044f.\u0440\u0444 ".repeat(20_000)],
  ])("returns for hostile %s, without more values than pieces", (_name, text) => {
    expect(found(text).length).toBeLessThan(100);
  });
});
