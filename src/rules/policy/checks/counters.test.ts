import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type CounterDoc, chargedCounter, refundedCounter, usedIn } from "./counters.ts";

describe("a sliding window", () => {
  it("forgets a charge once the window has passed it", () => {
    const doc = chargedCounter(undefined, 1_000, 5_000, 3);
    expect(usedIn(doc, 1_000, 5_000)).toBe(3);
    expect(usedIn(doc, 1_000, 5_999)).toBe(3);
    expect(usedIn(doc, 1_000, 6_000)).toBe(0);
    expect(usedIn(undefined, 1_000, 6_000)).toBe(0);
  });

  it("never counts too little, or more than a bucket too much, and stays small", () => {
    const step = fc.record({ wait: fc.nat({ max: 3_000 }), amount: fc.nat({ max: 5 }) });
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 20_000 }),
        fc.array(step, { maxLength: 300 }),
        (window_ms, steps) => {
          const width = Math.ceil(window_ms / 100);
          const made: [number, number][] = [];
          let now = 1_000_000;
          let doc: CounterDoc | undefined;
          for (const { wait, amount } of steps) {
            now += wait;
            const exact = made.reduce((sum, [at, n]) => (at > now - window_ms ? sum + n : sum), 0);
            const wider = made.reduce((sum, [at, n]) => (at > now - window_ms - width ? sum + n : sum), 0);
            const used = usedIn(doc, window_ms, now);
            expect(used).toBeGreaterThanOrEqual(exact);
            expect(used).toBeLessThanOrEqual(wider);
            doc = chargedCounter(doc, window_ms, now, amount);
            made.push([now, amount]);
            expect(doc.buckets.length).toBeLessThanOrEqual(102);
          }
        },
      ),
      { numRuns: 300 },
    );
  });

  it("does not lose charges when the clock goes back or the window changes", () => {
    let doc = chargedCounter(undefined, 60_000, 100_000, 1);
    doc = chargedCounter(doc, 60_000, 40_000, 1);
    expect(usedIn(doc, 60_000, 40_000)).toBe(2);
    expect(usedIn(doc, 60_000, 159_999)).toBe(2);
    for (let now = 200_000; now < 260_000; now += 100) doc = chargedCounter(doc, 60_000, now, 1);
    expect(doc.buckets.length).toBeLessThanOrEqual(102);
    for (let now = 260_000; now < 261_000; now++) doc = chargedCounter(doc, 50, now, 1);
    expect(usedIn(doc, 50, 260_999)).toBeGreaterThanOrEqual(50);
    for (let now = 261_000; now < 262_000; now++) doc = chargedCounter(doc, 100_000, now, 1);
    expect(doc.buckets.length).toBeLessThanOrEqual(200);
  });

  it("does not change the document it was given", () => {
    const doc = chargedCounter(undefined, 1_000, 5_000, 1);
    const before = JSON.stringify(doc);
    chargedCounter(doc, 1_000, 5_001, 1);
    expect(JSON.stringify(doc)).toBe(before);
  });
});

describe("giving back", () => {
  it("counts unrefunded calls as if the rest had never been, with any calls in between", () => {
    const charge = fc.record({
      wait: fc.nat({ max: 3_000 }),
      amount: fc.integer({ min: 1, max: 5 }),
      refundable: fc.boolean(),
      window_ms: fc.constantFrom(100, 5_000, 20_000),
    });
    fc.assert(
      fc.property(fc.array(charge, { maxLength: 200 }), fc.nat({ max: 30_000 }), (charges, later) => {
        let now = 1_000_000;
        let doc: CounterDoc | undefined;
        const made = charges.map(({ wait, amount, refundable, window_ms }) => {
          now += wait;
          doc = chargedCounter(doc, window_ms, now, amount, refundable);
          return { at_ms: now, amount, refundable };
        });
        // What the counter still holds, before and after: it loses the refunded charges that it holds, and no others.
        const held = (at: number) => doc!.buckets.findIndex(([latest]) => latest >= at);
        for (const one of made.filter(({ refundable }) => refundable)) {
          const sums = doc!.buckets.map(([, sum]) => sum);
          const less = refundedCounter(doc, one);
          if (less === null) continue;
          const own = held(one.at_ms);
          expect(less.buckets.map(([, sum]) => sum)).toEqual(
            sums.map((sum, i) => (i === own ? sum - one.amount : sum)),
          );
          doc = less;
        }
        now += later;
        const kept = made.filter(({ refundable }) => !refundable);
        const alive = kept.filter(({ at_ms }) => at_ms > now - 100);
        expect(usedIn(doc, 100, now)).toBeGreaterThanOrEqual(
          alive.reduce((sum, { amount }) => sum + amount, 0),
        );
      }),
    );
  });

  it("gives nothing back once the charge has left, and never below nothing", () => {
    const old = chargedCounter(undefined, 1_000, 5_000, 3, true);
    const later = chargedCounter(old, 1_000, 9_000, 2, true);
    expect(refundedCounter(later, { at_ms: 5_000, amount: 3 })).toBeNull();
    expect(refundedCounter(undefined, { at_ms: 5_000, amount: 3 })).toBeNull();
    expect(
      refundedCounter(chargedCounter(undefined, 1_000, 5_000, 3), { at_ms: 5_000, amount: 3 }),
    ).toBeNull();
    expect(refundedCounter(old, { at_ms: 5_000, amount: 4 })).toEqual({ buckets: [[5_000, 0, 5_000]] });
    const cents = chargedCounter(chargedCounter(undefined, 1_000, 5_000, 0.1, true), 1_000, 5_000, 0.2, true);
    expect(refundedCounter(cents, { at_ms: 5_000, amount: 0.1 })).toEqual({ buckets: [[5_000, 0.2, 5_000]] });
  });
});
