import { describe, expect, it } from "vitest";
import { isExpired, isInForce } from "./expiry.ts";

describe("expiry", () => {
  it.each([
    [999, false],
    [1_000, true],
    [1_001, true],
  ])("at %i of 1000: %s", (now, expired) => {
    expect(isExpired({ expires_ms: 1_000 }, now)).toBe(expired);
    expect(isInForce({ expires_ms: 1_000, revoked_ms: null }, now)).toBe(!expired);
  });

  it("never comes without a time", () => {
    expect(isExpired({ expires_ms: null }, Number.MAX_SAFE_INTEGER)).toBe(false);
    expect(isExpired({ expires_ms: Number.POSITIVE_INFINITY }, Number.MAX_SAFE_INTEGER)).toBe(false);
  });

  it("does not matter once revoked", () => {
    expect(isInForce({ expires_ms: 1_000, revoked_ms: 500 }, 0)).toBe(false);
  });
});
