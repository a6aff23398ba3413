import { expect, test } from "vitest";
import { requirementCycleProblems, setWarnings } from "./cross-check.ts";
import { readManifestEntry } from "./load.ts";
import { manifestSet } from "./set.ts";

const manifest = (tool: string, requires: string[]) =>
  readManifestEntry({ tool, effect: "read", permission: "p", requires });
type List = [string, string[]][];
const set = (list: List) => manifestSet(list.map(([tool, requires]) => manifest(tool, requires)));
const start = ({ tool }: { tool: string }) => `${tool}: `;

test("rings and the tools that wait behind them, but not those that they wait for", () => {
  const list: List = [
    ["a", ["b"]],
    ["b", ["c", "d"]],
    ["c", ["a"]],
    ["d", []],
    ["e", ["a"]],
    ["f", ["d"]],
  ];
  const ring = "requires: the prerequisites form a cycle, so the tool can never run; remove one of them";
  expect(requirementCycleProblems(set(list), start)).toEqual(
    ["a", "b", "c", "e"].map((tool) => `${tool}: ${ring}`),
  );
});

test("a chain of 20,000 is walked without exhausting the stack", () => {
  const chain = Array.from({ length: 20_000 }, (_, i): [string, string[]] => [
    `t${i}`,
    i === 0 ? [] : [`t${i - 1}`],
  ]);
  expect(requirementCycleProblems(set(chain), start)).toEqual([]);
  expect(setWarnings(set(chain), start)).toEqual([]);
});
