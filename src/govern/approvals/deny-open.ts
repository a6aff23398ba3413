/** Denies the open requests of a contained agent, regardless of groups and quorum, with one record each. */
import type { LedgerRecord } from "../../ledger/record.ts";
import type { EngineCore } from "../core.ts";
import type { StoreTx } from "../port/store.ts";
import { loadRun } from "../runs/load-run.ts";
import { type ApprovalDoc, type ApprovalVote, OPEN_APPROVAL_STATUSES } from "./approval.ts";
import { settleApproval } from "./requests.ts";

/** Denies requests that are still open. Requests that another caller has decided stay as they are. */
export function denyOpen(
  core: EngineCore,
  tx: StoreTx,
  ids: readonly string[],
  by: string,
  note: string,
): { denied: string[]; records: LedgerRecord[] } {
  const denied: string[] = [];
  const records: LedgerRecord[] = [];
  for (const id of ids) {
    const approval = tx.get("approvals", id);
    if (approval === undefined || !OPEN_APPROVAL_STATUSES.has(approval.status)) continue;
    const now = core.env.now();
    const vote: ApprovalVote = { by, decision: "deny", note, at_ms: now, for: null };
    const decided: ApprovalDoc = {
      ...approval,
      votes: [...approval.votes, vote],
      decided_by: by,
      decided_ms: now,
      note,
    };
    const run = loadRun(tx, approval.run_id);
    const detail = `request ${id}: ${note}`;
    records.push(settleApproval(tx, run, decided, { status: "denied", by, at_ms: now, detail }).record);
    tx.put("runs", run.run_id, run);
    denied.push(id);
  }
  return { denied, records };
}
