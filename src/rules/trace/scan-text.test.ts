/** The scan finds what each pattern alone would find, on texts that are made of what the patterns are about. */
import { describe, expect, it } from "vitest";
import { verifies } from "../../../test/support/verifies.ts";
import {
  ACCOUNT_PATTERN,
  AMOUNT_AFTER,
  AMOUNT_BEFORE,
  DIGIT_GROUPS,
  DOTTED_PATTERN,
  EMAIL_PATTERN,
  findDotted,
  findEmails,
  findNumbers,
  IP_ADDRESS,
  TOKEN_PATTERN,
} from "./scan-text.ts";

/** All matches of a sticky pattern, tried at every character. */
const allOf = (text: string, { source }: RegExp): string[] => text.match(new RegExp(source, "gu")) ?? [];
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

function assertSame(text: string): void {
  const { groups, accounts, tokens, addresses, amounts_after, amounts_before } = findNumbers(text);
  const found = { groups, accounts, tokens, addresses, amounts_after, amounts_before };
  expect({ emails: findEmails(text), dotted: findDotted(text), ...found }, JSON.stringify(text)).toEqual({
    emails: allOf(text, EMAIL_PATTERN),
    dotted: allOf(text, DOTTED_PATTERN),
    groups: allOf(text, DIGIT_GROUPS),
    accounts: allOf(text, ACCOUNT_PATTERN),
    tokens: allOf(text, TOKEN_PATTERN).filter((match) => countDigits(match) >= 3),
    addresses: allOf(text, IP_ADDRESS),
    amounts_after: allOf(text, AMOUNT_AFTER),
    amounts_before: allOf(text, AMOUNT_BEFORE),
  });
}

describe("the scan of a text", () => {
  it("finds what the patterns find, on 30,000 texts", () => {
    verifies("beyond.value.scan");
    for (let seed = 1; seed <= 30_000; seed++) assertSame(textOf(seed));
  });

  it.each([
    "ann@example.org,bob@b.example@c.example",
    "+49 30 1234567 a+1234567 ++1234567",
    "de89 3704 0044 0532 0130 00 xde89 3704 0044 0532",
    "usd 5 eur6 7chf 8 pounds, 1'000 eur 1,500.00 usd 12 sekt",
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
  ])("tries patterns in proportion to the length of the text: %s", (_, part) => {
    verifies("beyond.value.scan");
    const stepsOf = (times: number): number => {
      const text = part.repeat(times);
      let steps = 0;
      const at = text.charCodeAt;
      String.prototype.charCodeAt = function (this: string, i: number) {
        steps++;
        return at.call(this, i);
      };
      try {
        findEmails(text);
        findDotted(text);
        findNumbers(text);
      } finally {
        String.prototype.charCodeAt = at;
      }
      return steps;
    };
    expect(stepsOf(20_000)).toBeLessThan(2.2 * stepsOf(10_000));
  });
});
