/** The rollback report: one shape for every door, assembled from what became of each step. */

/** What a rollback can say of a step. `unverified` is an undone step whose read-back could not be run. */
export type StepOutcome =
  | { as: "compensated" | "unverified" | "skipped" }
  | { as: "unrecoverable" | "unresolved" | "unmanifested" | "awaiting_approval" }
  | ({ as: "failed" } & Failure)
  | { as: "deferred"; blocked_by: readonly number[] };

/** Why a step was not undone. */
export interface Failure {
  error: string;
  /** The undo was left alone: what is there now is not what the call left, or could not be looked at. */
  conflict?: true;
  /** What is there now, for a person who decides to overwrite it. */
  current_hash?: string;
}

/** What became of each step, by number and newest first. */
export interface RollbackReport {
  /** Undone, and read back where the manifest says how. */
  compensated: number[];
  /** Nothing to undo: reads, repeatable calls, and what was undone before. */
  skipped: number[];
  /** The undo was tried and did not work, or was left alone over a conflict. */
  failed: ({ step: number } & Failure)[];
  /** No undo is declared, or its time is over. */
  unrecoverable: number[];
  /** Whether the call took effect is not known: a person settles it first. */
  unresolved: number[];
  /** The tool has no manifest any more. */
  unmanifested: number[];
  /** Steps that build on it still stand. */
  deferred: { step: number; blocked_by: readonly number[] }[];
  /** The undo itself needs a person's yes. */
  awaiting_approval: number[];
  /** Undone, but there was no reader to read it back. */
  unverified: number[];
  /** Whether all that stood is undone and read back. */
  complete: boolean;
}

/** Whether a step with this outcome still stands and so holds what it depends on. */
export const STAYS: Record<StepOutcome["as"], boolean> = {
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

/** Every list is newest first, the order of the work. */
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
    if (outcome.as === "unverified" || STAYS[outcome.as]) report.complete = false;
  }
  return report;
}
