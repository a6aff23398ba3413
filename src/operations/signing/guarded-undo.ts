/** Undoes that an approvers file guards: the undo itself must be signed. */
import type { ApproversGuard } from "../../auth/approvers-guard.ts";
import type { CompensatorFn } from "../../rollback/ports.ts";
import type { ServiceApp } from "../app.ts";
import { undoSignatures } from "./signatures.ts";

/** Refuses an undo that the approvers file does not permit. An attempt that is repeated was permitted before. */
export function guardedCompensator(
  app: ServiceApp,
  guardOf: () => ApproversGuard | null,
  compensate: CompensatorFn,
): CompensatorFn {
  const permitted = new Set<string>();
  return async (request, signal) => {
    const { run_id, step, tool, args, idempotency_key } = request;
    const guard = guardOf();
    if (guard !== null && !permitted.has(idempotency_key)) {
      const evidence = () => undoSignatures(app, run_id, step);
      const objection = await guard.objection({ run_id, tool, args, undo: true }, evidence);
      if (objection !== null) throw new Error(objection);
      permitted.add(idempotency_key);
    }
    return compensate(request, signal);
  };
}
