/**
 * What rollbacks of a run have not done, kept with the run until a later rollback settles it: whether one is
 * unfinished, and which steps the last one left alone.
 */
import { loadSealedRun } from "../engine/load-run.ts";
import type { LeftAlone, LeftStep, RunDoc } from "../model/run.ts";
import type { Tx } from "../port/store.ts";
import type { RollbackReport } from "./report.ts";

/** The run is written with every call, so it names only so many; the newest are kept. */
const MAX_LEFT = 200;

/** Changes `run` in place; the caller stores it. Absent means that nothing is left. */
function setLeft(run: RunDoc, unfinished: boolean, steps: readonly LeftStep[]): void {
  if (unfinished || steps.length > 0) run.undo_left = { unfinished, steps: steps.slice(0, MAX_LEFT) };
  else delete run.undo_left;
}

/** A rollback begins, or an undo by a worker: until it ends, the run needs a person. */
export function markUnfinished(tx: Tx, run_id: string): void {
  const run = loadSealedRun(tx, run_id);
  if (run.undo_left?.unfinished === true) return;
  setLeft(run, true, run.undo_left?.steps ?? []);
  tx.put("runs", run_id, run);
}

/** The rollback ended: what it left replaces what earlier ones left of the steps that it looked at. */
export function settleRollback(tx: Tx, run_id: string, report: RollbackReport, down_to = 0): void {
  const run = loadSealedRun(tx, run_id);
  const older = (run.undo_left?.steps ?? []).filter(({ step }) => step < down_to);
  setLeft(run, false, [...leftBy(report), ...older]);
  tx.put("runs", run_id, run);
}

/** A worker's undo of one step ended, or was refused over a conflict. */
export function settleStep(tx: Tx, run_id: string, step: number, why: LeftAlone | null): void {
  const run = loadSealedRun(tx, run_id);
  const others = (run.undo_left?.steps ?? []).filter((one) => one.step !== step);
  setLeft(run, false, why === null ? others : [{ step, why }, ...others]);
  tx.put("runs", run_id, run);
}

/** Failed undos are counted by the run itself; here are those that were not tried, or not confirmed. */
function leftBy({ failed, deferred, unverified }: RollbackReport): LeftStep[] {
  return [
    ...failed.map(({ step, conflict }) => ({ step, why: conflict ? "conflict" : "failed" }) as const),
    ...deferred.map(({ step }) => ({ step, why: "deferred" }) as const),
    ...unverified.map((step) => ({ step, why: "unverified" }) as const),
  ].sort((a, b) => b.step - a.step);
}
