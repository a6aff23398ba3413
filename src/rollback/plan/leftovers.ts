/**
 * Stores the unfinished work of a run's rollbacks with the run, until a later rollback settles it: whether a rollback
 * is unfinished, and which steps the last one left.
 */
import type { StoreTx } from "../../govern/port/store.ts";
import { loadSealedRun } from "../../govern/runs/load-run.ts";
import type { RunDoc, SkippedStep, SkipReason } from "../../govern/runs/run.ts";
import type { RollbackReport } from "./report.ts";

/** Limit on listed steps, because every call rewrites the run's document. The newest steps are listed. */
const MAX_LEFT = 200;

/** Changes `run` in place; the caller stores it. An absent field means that nothing is left. */
function setLeft(run: RunDoc, unfinished: boolean, steps: readonly SkippedStep[]): void {
  if (unfinished || steps.length > 0) run.undo_left = { unfinished, steps: steps.slice(0, MAX_LEFT) };
  else delete run.undo_left;
}

/** Records that a rollback, or a worker's undo, has begun. The run needs attention until it ends. */
export function markUnfinished(tx: StoreTx, run_id: string): void {
  const run = loadSealedRun(tx, run_id);
  if (run.undo_left?.unfinished === true) return;
  setLeft(run, true, run.undo_left?.steps ?? []);
  tx.put("runs", run_id, run);
}

/** Records the end of a rollback. Its leftovers replace earlier ones for the steps that it visited. */
export function settleRollback(
  tx: StoreTx,
  run_id: string,
  report: RollbackReport,
  visited: (step: number) => boolean = () => true,
): void {
  const run = loadSealedRun(tx, run_id);
  const others = (run.undo_left?.steps ?? []).filter(({ step }) => !visited(step));
  setLeft(
    run,
    false,
    [...leftBy(report), ...others].sort((a, b) => b.step - a.step),
  );
  tx.put("runs", run_id, run);
}

/** Records that a worker's undo of one step ended, or was refused over a conflict. */
export function settleStep(tx: StoreTx, run_id: string, step: number, why: SkipReason | null): void {
  const run = loadSealedRun(tx, run_id);
  const others = (run.undo_left?.steps ?? []).filter((one) => one.step !== step);
  setLeft(run, false, why === null ? others : [{ step, why }, ...others]);
  tx.put("runs", run_id, run);
}

/** Steps that were not attempted or not confirmed. The run itself counts failed undos. */
function leftBy({ failed, deferred, unverified }: RollbackReport): SkippedStep[] {
  return [
    ...failed.map(({ step, conflict }) => ({ step, why: conflict ? "conflict" : "failed" }) as const),
    ...deferred.map(({ step }) => ({ step, why: "deferred" }) as const),
    ...unverified.map((step) => ({ step, why: "unverified" }) as const),
  ].sort((a, b) => b.step - a.step);
}
