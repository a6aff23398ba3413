import { expect, it } from "vitest";
import { verifies } from "../../../test/support/verifies.ts";
import { folded } from "./fold.ts";

it(`folds three equal neighbours and more, and nothing else ${verifies("beyond.first.folded")}`, () => {
  const groups = folded([..."abbcccdc"], (a, b) => a === b);
  expect(groups.map((group) => group.join(""))).toEqual(["a", "b", "b", "ccc", "d", "c"]);
  expect(folded([], () => true)).toEqual([]);
});
