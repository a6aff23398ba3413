import fc from "fast-check";
import { expect, test } from "vitest";
import { verifies } from "../../../test/support/verifies.ts";
import { compareVersions } from "./version.ts";

test("oldest first", () => {
  verifies("contract.readings.versions-compare");
  const order = [
    "alpha",
    "0.1",
    "1",
    "1.0",
    "1.2",
    "1.2.0",
    "1.2.0-rc1",
    "v1.3",
    "1.10",
    "2",
    "10",
    "10000000000000000000000000000000001",
  ];
  expect([...order].reverse().sort(compareVersions)).toEqual(order);
});

test("a total order: antisymmetric, transitive, equal only for the same text", () => {
  const version = fc.oneof(
    fc.string({ maxLength: 6 }),
    fc.stringMatching(/^v?[0-9]{1,2}(\.[0-9]{1,2}){0,3}(-[a-c])?$/),
  );
  fc.assert(
    fc.property(version, version, version, (a, b, c) => {
      expect(Math.sign(compareVersions(a, b))).toBe(-Math.sign(compareVersions(b, a)) + 0);
      expect(compareVersions(a, b) === 0).toBe(a === b);
      if (compareVersions(a, b) <= 0 && compareVersions(b, c) <= 0)
        expect(compareVersions(a, c)).toBeLessThanOrEqual(0);
    }),
  );
});
