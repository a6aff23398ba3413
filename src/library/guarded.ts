/** Guards the calls of a run with an approvers file. */
import type { ApproversGuard } from "../auth/approvers-guard.ts";
import type { RunTransport } from "./transport.ts";

/** The run's `objection`; none without an approvers file. */
export function guardedBy(
  guard: ApproversGuard | null,
  run_id: string,
  signaturesOf: (approval_id: string) => Promise<unknown>,
): Pick<RunTransport, "objection"> {
  if (guard === null) return {};
  return {
    objection: ({ tool, args }, approval_id) =>
      guard.objection({ run_id, tool, args }, async () =>
        approval_id === undefined ? undefined : signaturesOf(approval_id),
      ),
  };
}
