/**
 * The runner of tau2-bench's ground truth, on a small shop of the same layout: each rollback leaves the state equal, or
 * its report names the step behind each difference. `npm run prove -- tau2` plays the benchmark's own shop and airline.
 */
import { join } from "node:path";
import { expect, it } from "vitest";
import { playGroundTruth } from "../../stress/prove/tau2/run.ts";
import { ROOT } from "../support/files.ts";
import { verifies } from "../support/verifies.ts";

const from = { checkout: join(ROOT, "test/cases/ground-truth"), python: "python3" };

it("is equal where an undo is exact, and named where there is none", async () => {
  verifies("beyond.services.tau2");
  const counts = { domain: "retail", tasks: 2, writes: 3, refused: 1, unnamed: [] };
  expect(await playGroundTruth("retail", false, from)).toEqual({
    ...counts,
    restore: false,
    equal: 1,
    named: 1,
  });
  expect(await playGroundTruth("retail", true, from)).toEqual({
    ...counts,
    restore: true,
    equal: 2,
    named: 0,
  });
});

it("tells a difference that no report names", async () => {
  verifies("beyond.services.tau2");
  const { unnamed } = await playGroundTruth("retail", false, { ...from, env: { SHOP_LIES: "1" } });
  expect(unnamed).toEqual(["task 1: users.cy"]);
});
