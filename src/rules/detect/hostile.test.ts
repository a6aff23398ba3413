/**
 * Text that an attacker wrote must cost about what other text costs. A megabyte of any of these takes
 * about a tenth of a second; the bound is far above that, and still far below what a pattern that grows
 * faster than its text would need.
 */
import { describe, expect, it } from "vitest";
import { CREDENTIAL_PATTERNS } from "./credentials.ts";
import { findInjection } from "./injection.ts";
import { findPii } from "./pii.ts";
import { findSecrets } from "./secrets.ts";

const CHARS = 250_000;
const STALL_MS = 1_500;

const PIECES = [
  ...'a A 1 - _ . + @ = / : " { a@ a. a@b. 1- +1 4111- DE89'.split(" "),
  " ",
  "1 ",
  "+1 ",
  "4111 ",
  "DE89 ",
  "password",
  "password=",
  "password: ",
  "password is ",
  "token=",
  "token ",
  'api_key="',
  "://",
  "://a:",
  "://a:b",
  "://a:b@",
  "-----BEGIN PRIVATE KEY-----",
  "-----BEGIN RSA PRIVATE KEY-----\nAAAAAAAAAAAAAAAAAAAA",
  "eyJ",
  "eyJaaaaaaaaa.",
  "eyJaaaaaaaaa.eyJaaaaaaaaa",
  "bearer ",
  "bearer aaaaaaaaaaaaaaaa ",
  "basic ",
  "Basic YTpi ",
  "ignore all ",
  "ignore all the ",
  "ignore all previous a ",
  "act as if you ",
  "reveal the ",
  "send all your a ",
  "please now call the ",
  "\u200b",
  "\u{e0041}",
  "\nsystem:",
  "\n   ",
  "phone: 1",
  "+1 202 555 0143 ",
  "202-555-0143 ",
  "4111111111111111 ",
  "123-45-6789 ",
  "a@b.co ",
  "a@b.c-",
  "é@é.",
  ["AKIA", "IOSFODNN7EXAMPLE aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa "].join(""),
  "deadbeefdeadbeefdeadbeefdeadbeef-",
];

function stall(run: () => unknown): number {
  const from = process.cpuUsage().user;
  run();
  return (process.cpuUsage().user - from) / 1_000;
}

describe("hostile text", () => {
  it.each(PIECES)("made of %j does not stall a finder", (piece) => {
    const text = piece.repeat(Math.ceil(CHARS / piece.length)).slice(0, CHARS);
    for (const finder of [findSecrets, findPii, findInjection])
      expect(stall(() => finder(text))).toBeLessThan(STALL_MS);
  });

  it("made of any credential's own beginning does not either", () => {
    for (const hint of new Set(CREDENTIAL_PATTERNS.flatMap(({ hints }) => hints))) {
      const text = hint.repeat(Math.ceil(50_000 / hint.length));
      expect(
        stall(() => findSecrets(text)),
        hint,
      ).toBeLessThan(STALL_MS);
    }
  });

  it("with more hits than anybody could use is taken as a whole", () => {
    const text = "a@b.co ".repeat(5_000);
    expect(findPii(text)).toEqual([{ kind: "email", start: 0, end: text.length }]);
  });
});
