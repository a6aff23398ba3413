import { expect, it, vi } from "vitest";
import { until } from "./until.ts";

it("until waits for a condition, and vi.waitFor for an assertion, longer than a second", async () => {
  const late = performance.now() + 1_200;
  let asked = 0;
  await Promise.all([
    until(async () => ++asked > 1 && performance.now() > late, "time to pass"),
    vi.waitFor(() => expect(performance.now()).toBeGreaterThan(late)),
  ]);
  expect(asked).toBeGreaterThan(1);
});

it("until hands on what its condition throws: what cannot come true any more ends the wait at once", async () => {
  const ended = () => {
    throw new Error("it has ended");
  };
  await expect(until(ended, "an end")).rejects.toThrow("it has ended");
});
