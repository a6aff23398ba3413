/** The rollback report: one shape for every entry point, assembled from each step's outcome. */

/** Outcome of a step. `unverified` is an undone step whose read-back could not be run. */
export type StepOutcome =
  | { as: "compensated" | "unverified" | "skipped" }
  | { as: "unrecoverable" | "unresolved" | "unmanifested" | "awaiting_approval" }
  | ({ as: "failed" } & StepFailure)
  | { as: "deferred"; blocked_by: readonly number[] };

/** A part of a resource that an undo left alone, such as a file, and why. */
export interface LeftPart {
  path: string;
  error: string;
}

/** Why a step was not undone. */
export interface StepFailure {
  error: string;
  /** Set if the undo did not run because the resource changed since the call, or its state could not be read. */
  conflict?: true;
  /** The manifest's sentence on the call, if it has one. */
  line?: string;
  /** Hash of the current state, for an operator who decides to overwrite it. */
  current_hash?: string;
  /** The parts that the undo left alone. It restored all others. */
  parts?: readonly LeftPart[];
}

/** Outcome of each step, by number and newest first. */
export interface RollbackReport {
  /** Undone, and verified if the manifest declares a verification. */
  compensated: number[];
  /** Nothing to undo: reads, idempotent calls, and steps undone before. */
  skipped: number[];
  /** The undo failed, or did not run because of a conflict. */
  failed: ({ step: number } & StepFailure)[];
  /** No undo is declared, or the undo has expired. */
  unrecoverable: number[];
  /** The call's outcome is unknown; an operator has to resolve it first. */
  unresolved: number[];
  /** The step has no manifest. */
  unmanifested: number[];
  /** Steps that depend on it are not undone. */
  deferred: { step: number; blocked_by: readonly number[] }[];
  /** The undo itself requires an approval. */
  awaiting_approval: number[];
  /** Undone, but no reader was available to verify it. */
  unverified: number[];
  /** Whether every step that needed an undo is undone and verified. */
  complete: boolean;
}

/** Report of a run below the one that is rolled back. */
export interface ChildReport extends RollbackReport {
  run_id: string;
  /** Why the run could not be rolled back at all. */
  error?: string;
}

/** Report of a run with all runs below it. `complete` covers all of them. */
export interface TreeReport extends RollbackReport {
  /** Runs below, newest first. Present if the rollback covered them. */
  children?: readonly ChildReport[];
  /** Other runs, newest first. Present if the rollback covered steps of them. */
  with?: readonly ChildReport[];
}

/** Whether a step with this outcome stays active and so blocks the steps it depends on. */
export const OUTCOME_LEAVES_STEP_ACTIVE: Record<StepOutcome["as"], boolean> = {
  compensated: false,
  unverified: false,
  skipped: false,
  unrecoverable: true,
  unresolved: true,
  unmanifested: true,
  awaiting_approval: true,
  failed: true,
  deferred: true,
};

/** Every list is newest first, in the order of execution. */
export function assembleReport(outcomes: ReadonlyMap<number, StepOutcome>): RollbackReport {
  const report: RollbackReport = {
    compensated: [],
    skipped: [],
    failed: [],
    unrecoverable: [],
    unresolved: [],
    unmanifested: [],
    deferred: [],
    awaiting_approval: [],
    unverified: [],
    complete: true,
  };
  for (const [step, outcome] of [...outcomes].sort(([a], [b]) => b - a)) {
    if (outcome.as === "failed") {
      const { as: _, ...failure } = outcome;
      report.failed.push({ step, ...failure });
    } else if (outcome.as === "deferred") report.deferred.push({ step, blocked_by: outcome.blocked_by });
    else report[outcome.as].push(step);
    if (outcome.as === "unverified") report.compensated.push(step);
    if (outcome.as === "unverified" || OUTCOME_LEAVES_STEP_ACTIVE[outcome.as]) report.complete = false;
  }
  return report;
}
