import { expect, it } from "vitest";
import { verifies } from "../../../test/support/verifies.ts";
import { groupEqualNeighbours } from "./group-equal.ts";

it(`folds three equal neighbours and more, and nothing else ${verifies("beyond.first.folded")}`, () => {
  const groups = groupEqualNeighbours([..."abbcccdc"], (a, b) => a === b);
  expect(groups.map((group) => group.join(""))).toEqual(["a", "b", "b", "ccc", "d", "c"]);
  expect(groupEqualNeighbours([], () => true)).toEqual([]);
});
