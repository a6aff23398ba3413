/** Ending the open requests of an agent that is contained: past groups and quorum, on record, each once. */
import type { LedgerRecord } from "../../ledger/record.ts";
import { type ApprovalDoc, OPEN_APPROVAL, type Vote } from "../../model/approval.ts";
import type { Tx } from "../../port/store.ts";
import type { Core } from "../core.ts";
import { loadRun } from "../load-run.ts";
import { appendApprovalRecord } from "../records.ts";
import { moveApproval } from "./requests.ts";

/** Denies those that are still open; the others were ended by another caller, and stay as they are. */
export function denyOpen(
  core: Core,
  tx: Tx,
  ids: readonly string[],
  by: string,
  note: string,
): { denied: string[]; records: LedgerRecord[] } {
  const denied: string[] = [];
  const records: LedgerRecord[] = [];
  for (const id of ids) {
    const approval = tx.get("approvals", id);
    if (approval === undefined || !OPEN_APPROVAL.has(approval.status)) continue;
    const now = core.env.now();
    const vote: Vote = { by, decision: "deny", note, at_ms: now, for: null };
    const decided: ApprovalDoc = {
      ...approval,
      votes: [...approval.votes, vote],
      decided_by: by,
      decided_ms: now,
      note,
    };
    const run = loadRun(tx, approval.run_id);
    const moved = moveApproval(tx, run, decided, "denied");
    records.push(
      appendApprovalRecord(tx, run, moved, {
        event: "denied",
        actor: by,
        ts_ms: now,
        detail: `request ${id}: ${note}`,
      }),
    );
    tx.put("runs", run.run_id, run);
    denied.push(id);
  }
  return { denied, records };
}
