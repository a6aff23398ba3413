import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { sumAmounts } from "./decimal.ts";

const exact = (value: number): bigint => {
  const [, whole, fraction = "", power = "0"] = /^(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(value))!;
  return BigInt(whole! + fraction) * 10n ** BigInt(400 - fraction.length + Number(power));
};

describe("addUp", () => {
  it("adds as people write", () => {
    expect(sumAmounts(0.1, 0.2)).toBe(0.3);
    expect(sumAmounts(1.1, 2.2)).toBe(3.3);
    expect(sumAmounts(999.99, 0.01)).toBe(1000);
    expect(sumAmounts(2, 3)).toBe(5);
    let sum = 0;
    for (let i = 0; i < 1_000; i++) sum = sumAmounts(sum, 0.19);
    expect(sum).toBe(190);
  });

  it("is never below the exact sum", () => {
    const amount = fc.oneof(
      fc.double({ min: 0, noNaN: true, noDefaultInfinity: true }),
      fc.nat(),
      fc.integer({ min: 0, max: 1e9 }).map((n) => n / 100),
    );
    fc.assert(
      fc.property(amount, amount, (a, b) => {
        const sum = sumAmounts(a, b);
        if (sum === Number.MAX_VALUE) return;
        expect(exact(sum) >= exact(a) + exact(b)).toBe(true);
        expect(sumAmounts(b, a)).toBe(sum);
      }),
      { numRuns: 3_000 },
    );
  });

  it("stays finite", () => {
    expect(sumAmounts(Number.MAX_VALUE, Number.MAX_VALUE)).toBe(Number.MAX_VALUE);
    expect(sumAmounts(1e308, 1e-300)).toBeGreaterThanOrEqual(1e308);
    expect(sumAmounts(2 ** 53 - 1, 1)).toBeGreaterThanOrEqual(2 ** 53);
  });
});
