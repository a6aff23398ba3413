/**
 * What a unit of the engine sees in the sandbox: the memory store's documents, except where the sandbox
 * assumes something about the world around the call. Records are counted and not kept, since the
 * ledger of a run that never was is not read.
 */
import { runToolKey } from "../engine/keys.ts";
import { EMPTY_HEAD, type Head, type LedgerRecord, type RecordDraft } from "../ledger/record.ts";
import type { ApprovalDoc } from "../model/approval.ts";
import type { Tx } from "../port/store.ts";
import type { TableName, Tables } from "../port/tables.ts";

export interface Assumptions {
  run_id: string;
  /** The number that the step will have. */
  step: number;
  /** Required tools that are taken to have succeeded in the run. */
  prerequisites: ReadonlySet<string>;
  /** A person has approved exactly this call. */
  approved: boolean;
  /** The name of the logical call, instead of the one that the arguments give. */
  logical_call: string | null;
  /** Whether the step that stands for the logical call is taken to be gone by now. */
  released(holder: { run_id: string; step: number }): boolean;
}

/** How many records the sandbox's ledger would hold. */
export interface RecordCount {
  records: number;
}

type AssumedRead<N extends TableName> = (
  found: Tables[N] | undefined,
  assume: Assumptions,
  key: string,
) => Tables[N] | undefined;

const APPROVED_ID = "sandbox";

export class SandboxTx implements Tx {
  private readonly tx: Tx;
  private readonly count: RecordCount;
  private readonly assume: Assumptions;

  constructor(tx: Tx, count: RecordCount, assume: Assumptions) {
    this.tx = tx;
    this.count = count;
    this.assume = assume;
  }

  get head(): Head {
    return { ...EMPTY_HEAD, records: this.count.records };
  }

  get<N extends TableName>(table: N, key: string): Tables[N] | undefined {
    const found = this.tx.get(table, this.address(table, key));
    const reader = ASSUMED_READS[table] as AssumedRead<N> | undefined;
    return reader === undefined ? found : reader(found, this.assume, key);
  }

  /** Memory has everything at hand. */
  expect(): void {}

  put<N extends TableName>(table: N, key: string, doc: Tables[N]): void {
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

/** Approvals in the sandbox are assumptions; none is ever asked for or spent. */
const UNKEPT: ReadonlySet<TableName> = new Set(["approvals", "approval_slots"]);

/** Where the sandbox sees something else than the store holds. */
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

function isAssumed({ run_id, prerequisites }: Assumptions, key: string): boolean {
  for (const tool of prerequisites) if (runToolKey(run_id, tool) === key) return true;
  return false;
}

/** As by break-glass: it covers whatever terms the policy makes. */
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
    principal: "",
    escalate_after_ms: null,
    escalate_to: [],
    risk_score: 0,
    needs: [],
    voters: [],
  },
};
