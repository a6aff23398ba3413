/** Undoes that an approvers file guards: the undo itself must be signed. */
import type { CompensatorFn } from "../rollback/ports.ts";
import type { ApproversGuard } from "./approvers-guard.ts";

/** Asks for the signatures of the approval of a step's undo. */
type UndoEvidence = (run_id: string, step: number) => Promise<unknown>;

/** Refuses an undo that the approvers file does not permit. An attempt that is repeated was permitted before. */
export function guardedCompensator(
  guardOf: () => ApproversGuard | null | Promise<ApproversGuard | null>,
  evidence: UndoEvidence,
  compensate: CompensatorFn,
): CompensatorFn {
  const permitted = new Set<string>();
  return async (request, signal) => {
    const { run_id, step, tool, args, idempotency_key } = request;
    const guard = await guardOf();
    if (guard !== null && !permitted.has(idempotency_key)) {
      const objection = await guard.objection({ run_id, tool, args, undo: true }, () =>
        evidence(run_id, step),
      );
      if (objection !== null) throw new Error(objection);
      permitted.add(idempotency_key);
    }
    return compensate(request, signal);
  };
}
