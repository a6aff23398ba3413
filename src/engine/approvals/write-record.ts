/** The record that a move of a request leaves on the ledger. */
import type { LedgerEvent } from "../../ledger/events.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import type { ApprovalDoc } from "../../model/approval.ts";
import type { RunDoc } from "../../model/run.ts";
import type { Tx } from "../../port/store.ts";
import { appendRunRecord } from "../records.ts";

export function writeRecord(
  tx: Tx,
  run: RunDoc,
  approval: ApprovalDoc,
  event: LedgerEvent,
  actor: string,
  ts_ms: number,
  detail: string,
): LedgerRecord {
  return appendRunRecord(tx, run, {
    event,
    actor,
    ts_ms,
    detail,
    tool: approval.tool,
    step: approval.step ?? undefined,
    reason: approval.reason,
    args_hash: approval.args_hash,
  });
}
