/** Previews the rollback of a run together with all runs below it. */
import type { StateStore } from "../../govern/port/store.ts";
import { runsBelow } from "../../govern/runs/child-runs.ts";
import type { RunDoc } from "../../govern/runs/run.ts";
import { readStates } from "../plan/current-state.ts";
import { addProofs, type LoadedRun, loadForRollback, type PlanOptions } from "../plan/load-run.ts";
import { ledgerPlace } from "../plan/multi-run.ts";
import { planTogether, type RollbackPlan } from "../plan/plan.ts";

/** Plan of a run, with the plans of all runs below if they are covered. */
export interface TreePlan extends RollbackPlan {
  /** Newest first. */
  children?: RollbackPlan[];
}

/** The states that one run leaves are those that the others find, as in the rollback itself. */
export async function loadTreePlan(
  store: StateStore,
  run: RunDoc,
  { now_ms = 0, mask, stateReader }: PlanOptions,
): Promise<TreePlan> {
  const loaded: LoadedRun[] = [await loadForRollback(store, run.run_id)];
  for (const run_id of await runsBelow(store, run)) loaded.push(await loadForRollback(store, run_id));
  const states = stateReader ? await readStates(loaded, stateReader, now_ms) : null;
  const plans = planTogether(loaded, { now_ms, mask, states });
  for (const [i, plan] of plans.entries()) {
    const { steps } = loaded[i]!;
    await addProofs(store, plan, steps);
    for (const action of plan.actions)
      if (action.kind === "compensate") action.seq = ledgerPlace(steps[action.step]!);
  }
  const [own, ...below] = plans;
  const fully_reversible = plans.every((plan) => plan.fully_reversible);
  return { ...own!, fully_reversible, children: below.reverse() };
}
