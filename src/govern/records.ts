/** Writes a run's records, each with the run's seal and its number within the run. */
import type { LedgerEvent } from "../ledger/events.ts";
import type { LedgerRecord } from "../ledger/record.ts";
import type { ApprovalDoc } from "./approvals/approval.ts";
import type { StoreTx } from "./port/store.ts";
import type { RunDoc, StepDoc } from "./runs/run.ts";

export interface RunRecord {
  event: LedgerEvent;
  actor: string;
  ts_ms: number;
  step?: number | undefined;
  tool?: string | undefined;
  reason?: string | undefined;
  detail?: string | undefined;
  effect?: string | undefined;
  args_hash?: string | undefined;
  before_hash?: string | undefined;
  after_hash?: string | undefined;
  result_hash?: string | undefined;
  manifest_version?: string | undefined;
}

/** Appends a record and increments the run's count; the caller stores the run afterwards. */
export function appendRunRecord(tx: StoreTx, run: RunDoc, record: RunRecord): LedgerRecord {
  return tx.append({
    ts_ms: record.ts_ms,
    event: record.event,
    actor: record.actor,
    run_id: run.run_id,
    run_seq: run.next_run_seq++,
    step: record.step,
    tool: record.tool,
    tenant: run.tenant ?? undefined,
    reason: record.reason,
    detail: record.detail,
    effect: record.effect,
    args_hash: record.args_hash,
    before_hash: record.before_hash,
    after_hash: record.after_hash,
    result_hash: record.result_hash,
    manifest_version: record.manifest_version,
    scope_seal: run.scope.seal,
  });
}

/** Appends the record of a request's change of status. */
export function appendApprovalRecord(
  tx: StoreTx,
  run: RunDoc,
  { tool, step, reason, args_hash }: ApprovalDoc,
  move: { event: LedgerEvent; actor: string; ts_ms: number; detail: string },
): LedgerRecord {
  return appendRunRecord(tx, run, { ...move, tool, step: step ?? undefined, reason, args_hash });
}

/** Facts of a step that all its records contain. */
export function stepFacts(
  step: StepDoc,
): Pick<RunRecord, "step" | "tool" | "effect" | "args_hash" | "manifest_version"> {
  return {
    step: step.step,
    tool: step.tool,
    effect: step.effect ?? undefined,
    args_hash: step.args_hash,
    manifest_version: step.manifest_version ?? undefined,
  };
}
