/** Reading a run inside a unit of work: it exists, its scope is as sealed, and the caller may journal on it. */
import { conflict, notFound, type SvcError } from "../kernel/errors.ts";
import { copyOfRun, copyOfStep, isSealed, type RunDoc, type StepDoc } from "../model/run.ts";
import type { Tx } from "../port/store.ts";
import { stepKey } from "./keys.ts";

export function unknownRun(run_id: string): SvcError {
  return notFound(`unknown run ${run_id}`, "unknown_run");
}

/** A copy that the unit may change and put back. */
export function loadRun(tx: Tx, run_id: string): RunDoc {
  const run = tx.get("runs", run_id);
  if (run === undefined) throw unknownRun(run_id);
  return copyOfRun(run);
}

/** For everything but a decision, which lists the broken seal among its reasons. */
export function loadSealedRun(tx: Tx, run_id: string): RunDoc {
  const run = loadRun(tx, run_id);
  assertSealed(run);
  return run;
}

export function assertSealed(run: RunDoc): void {
  if (!isSealed(run)) {
    throw conflict(
      "scope_seal_mismatch",
      "scope seal mismatch: the stored scope of this run was changed, so it is refused",
    );
  }
}

export function loadStep(tx: Tx, run_id: string, step: number): StepDoc {
  const doc = tx.get("steps", stepKey(run_id, step));
  if (doc === undefined) throw notFound(`run ${run_id} has no step ${step}`, "unknown_step");
  return copyOfStep(doc);
}
