/** Finds the run that holds the followed values of a run. */
import type { StoreTx } from "../port/store.ts";
import { loadCountedRun } from "../runs/load-run.ts";
import { isInTree, type RunDoc } from "../runs/run.ts";

/** The run that holds the fingerprints: the root of the tree, or the run itself. */
export interface TracedRun {
  run_id: string;
  salt: string;
  /** Whether calls may have been made before the fingerprints began. */
  has_earlier_calls: boolean;
}

/** `own_calls`: number of calls that the run made before this one. A tree begins its fingerprints with its first child. */
export function tracedRun(tx: StoreTx, run: RunDoc, own_calls: number): TracedRun {
  const { run_id, salt } = loadCountedRun(tx, run);
  return { run_id, salt, has_earlier_calls: own_calls > 0 || isInTree(run) };
}
