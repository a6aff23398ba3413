/** Large values in turns: the same answers as at once, and a bounded number of looks between two pauses. */
import { describe, expect, it } from "vitest";
import { LARGEST_ARGS } from "../../proof/attack/largest.ts";
import { verifies } from "../../test/support/verifies.ts";
import { keepingArgs, keptArgs } from "../model/card/kept.ts";
import { FreeNames } from "../model/detect/free-names.ts";
import type { Finder } from "../model/detect/hit.ts";
import { changingJson, scanJson, scanningJson } from "../model/detect/json.ts";
import { findSecrets } from "../model/detect/secrets.ts";
import { canonical, canonicalizing } from "./canonical.ts";
import { type Json, type JsonObject, parseJson, parsingJsonBytes } from "./json.ts";
import { writingJson } from "./json-text.ts";
import { isLargeValue } from "./large-values.ts";
import { doAtOnce, type Paced, UNITS_A_PAUSE } from "./turns.ts";

const BYTES = 200_000;
const SHAPES = Object.entries(LARGEST_ARGS).map(([name, make]) => [name, make(BYTES)] as const);

/** How often the work pauses. */
function pausesOf(work: Paced<unknown>): number {
  let pauses = 0;
  while (work.next().done !== true) pauses++;
  return pauses;
}

const valuesIn = (value: Json): number =>
  value === null || typeof value !== "object"
    ? 1
    : Object.values(value).reduce((sum: number, member) => sum + valuesIn(member), 1);

describe("in turns as at once", () => {
  it.each(SHAPES)("%s", (_name, value) => {
    verifies("beyond.heavy.paced");
    const text = JSON.stringify(value);
    expect(doAtOnce(parsingJsonBytes(Buffer.from(text)))).toEqual(value);
    expect(parseJson(text)).toEqual(value);
    expect(doAtOnce(canonicalizing(value)) === canonical(value)).toBe(true);
    expect(doAtOnce(writingJson(value)) === text).toBe(true);
    expect(doAtOnce(keepingArgs(value, null))).toEqual(keptArgs(value, null));
    expect(isLargeValue(value)).toBe(true);
  });
});

describe("a turn", () => {
  it.each(SHAPES.filter(([, value]) => valuesIn(value) > 10_000))(
    "looks at a bounded number of values: %s",
    (_name, value) => {
      verifies("beyond.heavy.paced");
      const least = Math.floor(valuesIn(value) / UNITS_A_PAUSE) - 1;
      const none: Finder = () => [];
      const same = {
        leaf: (leaf: string | number) => leaf,
        name: (n: string) => n,
        within: (n: string) => n,
      };
      for (const work of [
        parsingJsonBytes(Buffer.from(JSON.stringify(value))),
        scanningJson(value, none),
        changingJson(value, same),
      ])
        expect(pausesOf(work)).toBeGreaterThanOrEqual(least);
      for (const work of [canonicalizing(value), writingJson(value)])
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
    const names = new FreeNames();
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
