/** Loads runs and steps inside a unit of work, and verifies the seal of a run. */
import { conflictError, notFoundError, type SvcError } from "../../kernel/errors.ts";
import { stepKey } from "../document-keys.ts";
import type { StoreTx } from "../port/store.ts";
import { copyOfRun, copyOfStep, countedRun, isSealed, type RunDoc, type StepDoc } from "./run.ts";

export function unknownRun(run_id: string): SvcError {
  return notFoundError(`unknown run ${run_id}`, "unknown_run");
}

/** Returns a copy that the unit can change and store. */
export function loadRun(tx: StoreTx, run_id: string): RunDoc {
  const run = tx.get("runs", run_id);
  if (run === undefined) throw unknownRun(run_id);
  return copyOfRun(run);
}

/** The root of the run's tree, or the run itself. Throws if the root is missing, so that a run never gets its own counters. */
export function loadCountedRun(tx: StoreTx, run: RunDoc): RunDoc {
  return run.child_of === undefined ? run : loadRun(tx, countedRun(run));
}

/** Throws on a broken seal. Decisions do not use it, since they list a broken seal among their reasons. */
export function loadSealedRun(tx: StoreTx, run_id: string): RunDoc {
  const run = loadRun(tx, run_id);
  assertSealed(run);
  return run;
}

export function assertSealed(run: RunDoc): void {
  if (!isSealed(run)) {
    throw conflictError(
      "scope_seal_mismatch",
      "scope seal mismatch: the stored scope of this run was changed, so the request is rejected",
    );
  }
}

/** Whether this principal opened the run. */
export function isRunOwner(run: Pick<RunDoc, "principal">, asking: { readonly id: string }): boolean {
  return run.principal === asking.id;
}

/** Throws as if the run did not exist. An agent cannot distinguish another agent's run from an unknown one. */
export function assertRunOwner(
  run: Pick<RunDoc, "run_id" | "principal">,
  asking: { readonly id: string },
): void {
  if (!isRunOwner(run, asking)) throw unknownRun(run.run_id);
}

export function loadStep(tx: StoreTx, run_id: string, step: number): StepDoc {
  const doc = tx.get("steps", stepKey(run_id, step));
  if (doc === undefined) throw notFoundError(`run ${run_id} has no step ${step}`, "unknown_step");
  return copyOfStep(doc);
}
