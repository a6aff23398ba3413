/**
 * Transaction that the engine sees in the sandbox: documents of the memory store, except for the sandbox's assumptions
 * about the call. Records are counted but not stored, since nothing reads the ledger of a sandbox run.
 */
import type { ApprovalDoc } from "../govern/approvals/approval.ts";
import { runToolKey } from "../govern/document-keys.ts";
import type { StoreTx } from "../govern/port/store.ts";
import type { TableDocs, TableName } from "../govern/port/tables.ts";
import { EMPTY_HEAD, type LedgerHead, type LedgerRecord, type RecordDraft } from "../ledger/record.ts";

export interface SandboxAssumptions {
  run_id: string;
  /** Number of the next step. */
  step: number;
  /** Required tools that are assumed to have succeeded in the run. */
  prerequisites: ReadonlySet<string>;
  /** True if exactly this call is assumed to be approved. */
  approved: boolean;
  /** Key of the logical call that replaces the one from the arguments. */
  logical_call: string | null;
  /** True if the step that holds the logical call is assumed to have released it. */
  released(holder: { run_id: string; step: number }): boolean;
}

/** Number of records that the sandbox's ledger would have. */
export interface RecordCount {
  records: number;
}

type AssumedRead<N extends TableName> = (
  found: TableDocs[N] | undefined,
  assume: SandboxAssumptions,
  key: string,
) => TableDocs[N] | undefined;

const APPROVED_ID = "sandbox";

export class SandboxTx implements StoreTx {
  private readonly tx: StoreTx;
  private readonly count: RecordCount;
  private readonly assume: SandboxAssumptions;

  constructor(tx: StoreTx, count: RecordCount, assume: SandboxAssumptions) {
    this.tx = tx;
    this.count = count;
    this.assume = assume;
  }

  get head(): LedgerHead {
    return { ...EMPTY_HEAD, records: this.count.records };
  }

  get<N extends TableName>(table: N, key: string): TableDocs[N] | undefined {
    const found = this.tx.get(table, this.address(table, key));
    const reader = ASSUMED_READS[table] as AssumedRead<N> | undefined;
    return reader === undefined ? found : reader(found, this.assume, key);
  }

  /** The memory store needs no prefetch. */
  expect(): void {}

  put<N extends TableName>(table: N, key: string, doc: TableDocs[N]): void {
    if (!UNKEPT.has(table)) this.tx.put(table, this.address(table, key), doc);
  }

  delete(table: TableName, key: string): void {
    if (!UNKEPT.has(table)) this.tx.delete(table, this.address(table, key));
  }

  append(draft: RecordDraft): LedgerRecord {
    return { ...draft, seq: this.count.records++, prev: "", hash: "" };
  }

  private address(table: TableName, key: string): string {
    return table === "idempotency" ? (this.assume.logical_call ?? key) : key;
  }
}

/** Tables that the sandbox never writes: its approvals are assumptions. */
const UNKEPT: ReadonlySet<TableName> = new Set(["approvals", "approval_slots"]);

/** Reads for which the sandbox replaces the stored document. */
const ASSUMED_READS: { readonly [N in TableName]?: AssumedRead<N> } = {
  runs: (found, { step }) => found && { ...found, next_step: step },
  run_tools: (found, assume, key) =>
    (found?.standing ?? 0) === 0 && isAssumed(assume, key)
      ? { run_id: assume.run_id, tool: "", calls: 1, ...found, standing: 1 }
      : found,
  idempotency: (found, assume) => (found === undefined || assume.released(found) ? undefined : found),
  approval_slots: (_found, { approved }) => (approved ? { id: APPROVED_ID } : undefined),
  approvals: (_found, { approved }, key) => (approved && key === APPROVED_ID ? APPROVED : undefined),
};

function isAssumed({ run_id, prerequisites }: SandboxAssumptions, key: string): boolean {
  for (const tool of prerequisites) if (runToolKey(run_id, tool) === key) return true;
  return false;
}

/** Covers any terms of the policy. */
const APPROVED: ApprovalDoc = {
  id: APPROVED_ID,
  run_id: "",
  tool: "",
  actor: "",
  tenant: null,
  args_hash: "",
  arg_names: [],
  reason: "",
  rule: null,
  status: "approved",
  requested_ms: 0,
  expires_ms: Number.POSITIVE_INFINITY,
  approvers: { groups: [], quorum: 1 },
  votes: [],
  decided_by: null,
  decided_ms: null,
  note: null,
  kind: "call",
  step: null,
  escalated_ms: null,
  break_glass: true,
  internal: {
    assumed: true,
    principal: "",
    escalate_after_ms: null,
    escalate_to: [],
    risk_score: 0,
    needs: [],
    voters: [],
  },
};
