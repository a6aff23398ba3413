/** tau2-bench's ground truth, rolled back: `SVC_TAU2_CHECKOUT` names a checkout, `SVC_TAU2_AIRLINE` the airline's data. */
import { describe, expect, it } from "vitest";
import { playGroundTruth } from "../../stress/prove/tau2/run.ts";
import { verifies } from "../support/verifies.ts";

const { SVC_TAU2_CHECKOUT: checkout, SVC_TAU2_AIRLINE: parts } = process.env;

describe.runIf(checkout !== undefined)("the ground truth of tau2-bench", () => {
  it.each([
    ["retail", false],
    ["retail", true],
    ["airline", false],
    ["airline", true],
  ] as const)("of %s, with a restore tool: %s", { timeout: 600_000 }, async (domain, restores) => {
    verifies("beyond.services.tau2");
    const from = {
      checkout: checkout!,
      python: "python3",
      limit: 5,
      ...(parts === undefined ? {} : { parts }),
    };
    const { tasks, equal, named, unnamed } = await playGroundTruth(domain, restores, from);
    expect(unnamed).toEqual([]);
    expect(restores ? equal : equal + named).toBe(tasks);
  });
});
