/**
 * Random histories against the model, each from its seed: a failure names the seed, and
 * `SVC_SIM_SEED=<seed> SVC_SIM_CASES=1` plays it again. `SVC_SIM_CASES` sets how many are played.
 */
import { expect, it } from "vitest";
import { verifies } from "../support/verifies.ts";
import { Case } from "./rollback-case.ts";

const CASES = Number(process.env["SVC_SIM_CASES"] ?? 1_000);
const FIRST_SEED = Number(process.env["SVC_SIM_SEED"] ?? 1);

it(`rolls ${CASES} random runs back as the model says ${verifies("core.rollback.newest-first", "core.rollback.one-at-a-time", "core.rollback.dependents-first-requires", "core.rollback.dependents-first-depends-on", "core.report.complete")}`, async () => {
  const totals: Record<string, number> = {};
  for (let seed = FIRST_SEED; seed < FIRST_SEED + CASES; seed++) {
    const one = new Case(seed);
    await one.play();
    expect(one.problems, `seed ${seed}`).toEqual([]);
    for (const [name, n] of Object.entries(one.counts)) totals[name] = (totals[name] ?? 0) + n;
  }
  // A simulation in which nothing happens proves nothing.
  if (CASES >= 1_000)
    for (const [name, n] of Object.entries(totals)) expect(n, name).toBeGreaterThan(CASES / 20);
}, 600_000);
