import { expect, test } from "vitest";
import { setWarnings } from "./cross-check.ts";
import { readManifestEntry } from "./load.ts";
import { manifestSet } from "./set.ts";

const manifest = (tool: string, requires: string[]) =>
  readManifestEntry({ tool, effect: "read", permission: "p", requires });
const warnings = (...list: [string, string[]][]) =>
  setWarnings(
    manifestSet(list.map(([tool, requires]) => manifest(tool, requires))),
    ({ tool }) => `${tool}: `,
  );

test("circles and what waits behind them, but not what they wait for", () => {
  const circle = "requires: the prerequisites form a circle, so the tool can never run";
  expect(
    warnings(["a", ["b"]], ["b", ["c", "d"]], ["c", ["a"]], ["d", []], ["e", ["a"]], ["f", ["d"]]),
  ).toEqual([`a: ${circle}`, `b: ${circle}`, `c: ${circle}`, `e: ${circle}`]);
});

test("a chain of 20,000 is walked without exhausting the stack", () => {
  const chain = Array.from({ length: 20_000 }, (_, i): [string, string[]] => [
    `t${i}`,
    i === 0 ? [] : [`t${i - 1}`],
  ]);
  expect(warnings(...chain)).toEqual([]);
});
