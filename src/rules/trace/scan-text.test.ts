/** The scan finds what each pattern alone would find, on texts that are made of what the patterns are about. */
import { describe, expect, it } from "vitest";
import { sized } from "../../../test/support/long.ts";
import { verifies } from "../../../test/support/verifies.ts";
import { findDotted, findEmails, type TextPlaces, WordScan } from "./scan-text.ts";
import { codesOf } from "./text-codes.ts";

const EMAIL_PATTERN =
  /(?<![\p{L}\p{N}._%+-])[\p{L}\p{N}._%+-]{1,64}@[\p{L}\p{N}-]{1,63}(?:\.[\p{L}\p{N}-]{1,63}){1,8}/gu;
const DOTTED_PATTERN =
  /(?<![\p{L}\p{N}@._-])(?:[\p{L}\p{N}_-]{1,63}\.){1,8}[\p{L}][\p{L}\p{N}-]{0,23}(?![\p{L}\p{N}_@-])/gu;
const DIGIT_GROUPS = /(?<![\p{L}\p{N}.,])\+?\d(?:[ ()/-]{0,2}\d){6,18}(?![\p{L}\p{N}])/gu;
const ACCOUNT_PATTERN =
  /(?<![\p{L}\p{N}])[a-z]{2}\d{2} [a-z0-9]{4}(?: (?=[a-z]{0,3}\d)[a-z0-9]{1,4}){1,7}(?![\p{L}\p{N}])/gu;
const TOKEN_PATTERN = /(?<![\p{L}\p{N}_-])(?=[\p{L}_-]{0,127}\d)[\p{L}\p{N}_-]{6,128}(?![\p{L}\p{N}_-])/gu;
const IP_ADDRESS = /(?<![\p{L}\p{N}.])\d{1,3}(?:\.\d{1,3}){3}(?![\p{L}\p{N}]|\.\d)/gu;
const CURRENCY = "[$€£¥₹]|usd|eur|gbp|chf|jpy|cny|inr|cad|aud|sek|nok|dkk|pln|dollars?|euros?|pounds?";
const AMOUNT_AFTER = new RegExp(`(?<=(?:${CURRENCY}) ?)\\d[\\d.,']{0,20}`, "gu");
const AMOUNT_BEFORE = new RegExp(`(?<![\\p{L}\\p{N}.,])\\d[\\d.,']{0,20} ?(?:${CURRENCY})(?![\\p{L}])`, "gu");
const PHONE_PATTERN = /(?<![\p{L}\p{N}.,])(?:\d{1,3}\.)?\d{3}\.\d{3,4}\.\d{4}(?![\p{L}\p{N}]|\.\d)/gu;
const TEXTS = sized(3_000, 30_000);
const WORD_PATTERN = /[\p{L}\p{N}]+/gu;

const allOf = (text: string, pattern: RegExp): string[] => text.match(pattern) ?? [];
const countDigits = (text: string): number => text.replace(/[^0-9]/g, "").length;

const WORDS =
  "a|ab|x1|order|é|ß|中|٣|²|𐌰|𝟘|1|12|123|1234|12345678|1234567890123|0000000000000000000000|gb12|de89|370400|0440|0532|eur|euro|euros|usd|dollar|dollars|chf|pln|sek|pound|$|€|¥|192|168|8080|example|md|notes|pdf|co|uk|www|ann|müller|2024-01-05".split(
    "|",
  );
const GAPS = [
  ..."|| |  |.|..|,|'|@|@@|-|--|_|/|(|) |+| +|:|;|. |, |%|#|\n|=|. eur |.5 ".split("|"),
  "a".repeat(63),
  "b".repeat(65),
  "7".repeat(130),
];

/** Texts of a fixed sequence of random choices. */
function textOf(seed: number): string {
  let state = seed * 2_654_435_761 + 1;
  const pick = <T>(list: readonly T[]): T => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return list[(state >>> 8) % list.length]!;
  };
  return Array.from({ length: 2 + (seed % 24) }, () => pick(WORDS) + pick(GAPS)).join("");
}

/** What the scans of a text find, by their pattern. */
function scanned(text: string, codes: Uint16Array): Record<string, TextPlaces> {
  const { found, words, word_count } = new WordScan(codes);
  return {
    emails: findEmails(text, codes),
    dotted: findDotted(text, codes),
    ...found,
    words: [...words.subarray(0, 2 * word_count)],
  };
}

function assertSame(text: string): void {
  const textsOf = (places: TextPlaces): string[] =>
    places.flatMap((from, i) => (i % 2 === 0 ? [text.slice(from, places[i + 1])] : []));
  // Account numbers with a checksum have no pattern.
  const { checked_accounts: _, ...places_by_kind } = scanned(text, codesOf(text));
  const found = Object.entries(places_by_kind);
  expect(
    Object.fromEntries(found.map(([kind, places]) => [kind, textsOf(places)])),
    JSON.stringify(text),
  ).toEqual({
    emails: allOf(text, EMAIL_PATTERN),
    dotted: allOf(text, DOTTED_PATTERN),
    groups: allOf(text, DIGIT_GROUPS),
    accounts: allOf(text, ACCOUNT_PATTERN),
    tokens: allOf(text, TOKEN_PATTERN).filter((match) => countDigits(match) >= 3),
    phones: allOf(text, PHONE_PATTERN),
    addresses: allOf(text, IP_ADDRESS),
    amounts_after: allOf(text, AMOUNT_AFTER),
    amounts_before: allOf(text, AMOUNT_BEFORE),
    words: allOf(text, WORD_PATTERN),
  });
}

describe("the scan of a text", () => {
  it("finds what the patterns find, on thousands of texts", () => {
    verifies("beyond.value.scan");
    for (let seed = 1; seed <= TEXTS; seed++) assertSame(textOf(seed));
  });

  it.each([
    "ann@example.org,bob@b.example@c.example",
    "+49 30 1234567 a+1234567 ++1234567",
    "de89 3704 0044 0532 0130 00 xde89 3704 0044 0532",
    "usd 5 eur6 7chf 8 pounds, 1'000 eur 1,500.00 usd 12 sekt",
    "$5 and € 6",
    "415.555.2671 +1.415.555.2671 1.2.415.555.2671 415.555.2671.5 x415.555.2671",
    "10.0.0.1 1.2.3.4.5 999.1.1.1.x",
    "notes.md x.y.z.example a..b -a.b @a.b 0.5.example",
    `${"é".repeat(70)}@example.org ${"1".repeat(128)} ${"1".repeat(129)} 𐌰123456`,
  ])("finds what the patterns find: %s", assertSame);

  it.each([
    ["amounts", "1'"],
    ["dots", "1."],
    ["addresses", "a@"],
    ["gaps", "1 "],
    ["signs", "+1"],
    ["tokens", "a1-"],
    ["labels", "a.b@"],
    ["groups", "gb12 1234 "],
    ["astral letters", "𐌰1."],
  ])("reads characters in proportion to the length of the text: %s", (_, part) => {
    verifies("beyond.value.scan");
    const readsOf = (times: number): number => {
      const text = part.repeat(times);
      let reads = 0;
      const codes = new Proxy(codesOf(text).slice(), {
        get(target, name) {
          reads++;
          return Reflect.get(target, name, target);
        },
      });
      scanned(text, codes);
      return reads;
    };
    expect(readsOf(4_000)).toBeLessThan(2.2 * readsOf(2_000));
  });
});
