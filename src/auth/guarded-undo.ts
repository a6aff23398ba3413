/** Undoes that an approvers file guards: the undo itself must be signed. */
import { toCanonicalJson } from "../kernel/json/canonical.ts";
import type { CompensationCall, CompensatorFn } from "../rollback/ports.ts";
import type { ApproversGuard } from "./approvers-guard.ts";

/** Asks for the signatures of the approval of a step's undo. */
type UndoEvidence = (run_id: string, step: number) => Promise<unknown>;

/**
 * Refuses an undo that the approvers file does not permit. A signed undo that failed may be tried again, until an attempt
 * succeeds.
 */
export function guardedCompensator(
  guardOf: () => ApproversGuard | null | Promise<ApproversGuard | null>,
  evidence: UndoEvidence,
  compensate: CompensatorFn,
): CompensatorFn {
  const permitted = new Set<string>();
  return async (request, signal) => {
    const guard = await guardOf();
    if (guard === null) return compensate(request, signal);
    const { run_id, step, tool, args } = request;
    const undo = attemptOf(request);
    if (!permitted.has(undo)) {
      const objection = await guard.objection({ run_id, tool, args, undo }, () => evidence(run_id, step));
      if (objection !== null) throw new Error(objection);
      permitted.add(undo);
    }
    const done = await compensate(request, signal);
    permitted.delete(undo);
    await guard.undone(undo);
    return done;
  };
}

/** What all attempts of one undo have in common, and no other undo. */
const attemptOf = ({ run_id, step, tool, args, idempotency_key }: CompensationCall): string =>
  toCanonicalJson({ run_id, step, tool, args, idempotency_key });
