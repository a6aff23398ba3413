/** The rollback report: one shape for every door, assembled from what became of each step. */

/** What a rollback can say of a step. `unverified` is an undone step whose read-back could not be run. */
export type StepOutcome =
  | { as: "compensated" | "unverified" | "skipped" }
  | { as: "unrecoverable" | "unresolved" | "unmanifested" | "awaiting_approval" }
  | { as: "failed"; error: string }
  | { as: "deferred"; blocked_by: readonly number[] };

export interface RollbackReport {
  compensated: number[];
  skipped: number[];
  failed: { step: number; error: string }[];
  unrecoverable: number[];
  unresolved: number[];
  unmanifested: number[];
  deferred: { step: number; blocked_by: readonly number[] }[];
  awaiting_approval: number[];
  unverified: number[];
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
    if (outcome.as === "failed") report.failed.push({ step, error: outcome.error });
    else if (outcome.as === "deferred") report.deferred.push({ step, blocked_by: outcome.blocked_by });
    else report[outcome.as].push(step);
    if (outcome.as === "unverified") report.compensated.push(step);
    if (outcome.as === "unverified" || STAYS[outcome.as]) report.complete = false;
  }
  return report;
}
