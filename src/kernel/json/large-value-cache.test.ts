/** Large values in turns: the same answers as at once, and a bounded number of looks between two pauses. */
import { describe, expect, it } from "vitest";
import { LARGEST_ARGS } from "../../../stress/attack/largest.ts";
import { verifies } from "../../../test/support/verifies.ts";
import { computingVisibleArgs, visibleArgs } from "../../govern/cards/visible-values.ts";
import type { HitFinder } from "../../rules/detect/hits.ts";
import { changingJson, scanJson, scanningJson } from "../../rules/detect/json.ts";
import { findSecrets } from "../../rules/detect/secrets.ts";
import { UniqueNames } from "../../rules/detect/unique-names.ts";
import { type PausableWork, runAtOnce, UNITS_PER_PAUSE } from "../pausable-work.ts";
import { toCanonicalJson, toCanonicalJsonInSteps } from "./canonical.ts";
import { type JsonObject, type JsonValue, parseJson, parseJsonBytesInSteps } from "./json.ts";
import { jsonTextInSteps } from "./json-text.ts";
import { memberNames } from "./known-large.ts";
import { isLargeValue } from "./large-value-cache.ts";

const BYTES = 200_000;
const SHAPES = Object.entries(LARGEST_ARGS).map(([name, make]) => [name, make(BYTES)] as const);

/** How often the work pauses. */
function pausesOf(work: PausableWork<unknown>): number {
  let pauses = 0;
  while (work.next().done !== true) pauses++;
  return pauses;
}

const valuesIn = (value: JsonValue): number =>
  value === null || typeof value !== "object"
    ? 1
    : Object.values(value).reduce((sum: number, member) => sum + valuesIn(member), 1);

describe("in turns as at once", () => {
  it.each(SHAPES)("%s", (_name, value) => {
    verifies("beyond.heavy.paced");
    const text = JSON.stringify(value);
    expect(runAtOnce(parseJsonBytesInSteps(Buffer.from(text)))).toEqual(value);
    expect(parseJson(text)).toEqual(value);
    expect(runAtOnce(toCanonicalJsonInSteps(value)) === toCanonicalJson(value)).toBe(true);
    expect(runAtOnce(jsonTextInSteps(value)) === text).toBe(true);
    expect(runAtOnce(computingVisibleArgs(value, null))).toEqual(visibleArgs(value, null));
    expect(isLargeValue(value)).toBe(true);
  });
});

describe("a turn", () => {
  it.each(SHAPES.filter(([, value]) => valuesIn(value) > 10_000))(
    "looks at a bounded number of values: %s",
    (_name, value) => {
      verifies("beyond.heavy.paced");
      const least = Math.floor(valuesIn(value) / UNITS_PER_PAUSE) - 1;
      const none: HitFinder = () => [];
      const same = {
        leaf: (leaf: string | number) => leaf,
        name: (n: string) => n,
        within: (n: string) => n,
      };
      for (const work of [
        parseJsonBytesInSteps(Buffer.from(JSON.stringify(value))),
        scanningJson(value, none),
        changingJson(value, same),
      ])
        expect(pausesOf(work)).toBeGreaterThanOrEqual(least);
      for (const work of [toCanonicalJsonInSteps(value), jsonTextInSteps(value)])
        expect(pausesOf(work)).toBeGreaterThanOrEqual(1);
    },
  );

  it("is not long because of a long text: texts count by their length", () => {
    verifies("beyond.heavy.paced");
    const value = Array.from({ length: 20 }, () => "a".repeat(100_000));
    expect(pausesOf(scanningJson(value, () => []))).toBeGreaterThanOrEqual(6);
  });
});

describe("names that are masked alike", () => {
  it("are each numbered once", () => {
    verifies("beyond.heavy.names");
    const names = new UniqueNames();
    const out: JsonObject = {};
    for (let i = 0; i < 20_000; i++) out[names.nameIn(out, "same")] = i;
    expect(Object.keys(out)).toHaveLength(20_000);
    expect(out["same#20000"]).toBe(19_999);
    expect(names.looks).toBeLessThanOrEqual(2 * 20_000);
  });

  it("keep their paths where something is found below them", () => {
    const token = ["ghp", "_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0hJ3lMx"].join("");
    const value = { a: [{ b: "x" }, { c: [token] }], d: token };
    expect(scanJson(value, findSecrets).map(({ path }) => path)).toEqual(["$args.a[1].c[0]", "$args.d"]);
  });
});

/** A wide object that counts how often its names are listed. */
function countedObject(members: number): { object: JsonObject; listings: () => number } {
  let listings = 0;
  const fields = Object.fromEntries(Array.from({ length: members }, (_, i) => [`k${i}`, "v"]));
  const object = new Proxy(fields, {
    ownKeys(target) {
      listings++;
      return Reflect.ownKeys(target);
    },
  });
  return { object, listings: () => listings };
}

it("lists the names of a wide object once, for all readers", () => {
  verifies("beyond.heavy.wide");
  const { object, listings } = countedObject(5_000);
  for (let i = 0; i < 5; i++) expect(isLargeValue({ args: object })).toBe(true);
  expect(isLargeValue(object)).toBe(true);
  const before = listings();
  for (let i = 0; i < 5; i++) {
    expect(isLargeValue(object)).toBe(true);
    expect(memberNames(object)).toHaveLength(5_000);
  }
  expect(listings() - before).toBe(1);
  const parsed = parseJson(JSON.stringify({ 2: "b", 1: "a", ...object })) as JsonObject;
  expect(memberNames(parsed)).toEqual(Object.keys(parsed));
  expect(memberNames({ b: 1, a: 2 })).toEqual(["b", "a"]);
});
