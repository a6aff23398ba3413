/** Works of one turn of the event loop count together. */
import { afterEach, expect, it, vi } from "vitest";
import { verifies } from "../../test/support/verifies.ts";
import type { PausableWork } from "../kernel/pausable-work.ts";
import { runInSlices } from "./event-loop-slices.ts";

afterEach(() => vi.restoreAllMocks());

it("a hundred short works in a row give others a turn in between", async () => {
  verifies("beyond.heavy.turns");
  let now = 0;
  vi.spyOn(performance, "now").mockImplementation(() => now);
  function* work(): PausableWork<void> {
    now += 1;
    yield;
  }
  let turns = 0;
  let isDone = false;
  const others = (): void => {
    turns++;
    if (!isDone) setImmediate(others);
  };
  setImmediate(others);
  for (let i = 0; i < 100; i++) await runInSlices(work());
  isDone = true;
  expect(turns).toBeGreaterThanOrEqual(9);
});
