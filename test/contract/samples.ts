/** Documents and records for the store tests: as small as their types allow. */
import type { ApprovalDoc } from "../../src/govern/approvals/approval.ts";
import type { StateStore, StoreTx } from "../../src/govern/port/store.ts";
import type { TableDocs, TableName } from "../../src/govern/port/tables.ts";
import type { StepDoc } from "../../src/govern/runs/run.ts";
import type { RecordDraft } from "../../src/ledger/record.ts";

export const T0 = 1_767_225_600_000;

export function draft(more: Partial<RecordDraft> = {}): RecordDraft {
  return { ts_ms: T0, event: "intended", actor: "bot", ...more };
}

export function approvalDoc(more: Partial<ApprovalDoc> = {}): ApprovalDoc {
  return {
    id: "apr_1",
    run_id: "run_1",
    tool: "payments.refund",
    actor: "bot",
    tenant: null,
    args_hash: "sha256:00",
    arg_names: ["amount"],
    reason: "over the limit",
    rule: "big-refunds",
    status: "pending",
    requested_ms: T0,
    expires_ms: T0 + 86_400_000,
    approvers: { groups: [], quorum: 1 },
    votes: [],
    decided_by: null,
    decided_ms: null,
    note: null,
    kind: "call",
    step: null,
    escalated_ms: null,
    break_glass: false,
    internal: {
      principal: "key:bot",
      escalate_after_ms: null,
      escalate_to: [],
      risk_score: 0,
      needs: [],
      voters: [],
    },
    ...more,
  };
}

export function stepDoc(more: Partial<StepDoc> = {}): StepDoc {
  return {
    run_id: "run_1",
    step: 0,
    tool: "crm.create_contact",
    reason: "asked to",
    effect: "compensable",
    status: "intended",
    depends_on: [],
    requires: [],
    compensation_tool: "crm.delete_contact",
    handle: "h",
    error: null,
    manifest_version: "1",
    manifest_hash: null,
    risk_score: 0,
    args_hash: "sha256:00",
    result_hash: null,
    intended_ms: T0,
    finished_ms: null,
    intended_seq: 0,
    succeeded_seq: null,
    compensated_seq: null,
    idempotency: null,
    ...more,
  };
}

/** A unit that appends one record and nothing else. */
export function append(store: StateStore, more: Partial<RecordDraft> = {}) {
  return store.transact({ run: (tx) => tx.append(draft(more)) });
}

export function put<N extends TableName>(
  store: StateStore,
  table: N,
  docs: Record<string, TableDocs[N]>,
): Promise<void> {
  return store.transact({
    run: (tx) => {
      for (const [key, doc] of Object.entries(docs)) tx.put(table, key, doc as TableDocs[N]);
    },
  });
}

export function remove(store: StateStore, table: TableName, key: string): Promise<void> {
  return store.transact({ run: (tx) => tx.delete(table, key) });
}

/** Counts a number up, which only works if nobody else does so at the same time. */
export function increment(tx: StoreTx, key: string): number {
  const next = ((tx.get("meta", key) as number | undefined) ?? 0) + 1;
  tx.put("meta", key, next);
  return next;
}
