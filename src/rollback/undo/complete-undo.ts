/**
 * Completes an undo: records the verification result and the final status together with the step, in one transaction.
 */
import type { EngineCore } from "../../govern/core.ts";
import { adjustActiveSteps } from "../../govern/decide/active-steps.ts";
import { refundUndone } from "../../govern/decide/refunds.ts";
import { stepKey } from "../../govern/document-keys.ts";
import type { StoreTx, UnitOfWork } from "../../govern/port/store.ts";
import { appendRunRecord, type RunRecord, stepFacts } from "../../govern/records.ts";
import { loadSealedRun, loadStep } from "../../govern/runs/load-run.ts";
import { conflictError } from "../../kernel/errors.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { cutText } from "../../kernel/text/truncate.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import { removeCallValues } from "../../rules/redact/remove-values.ts";
import { leaseNeed, renewLease, type WorkLease } from "../lease.ts";
import type { UndoCall } from "../plan/classify.ts";
import type { LeftPart } from "../plan/report.ts";
import { undoCovered } from "./covered-steps.ts";
import type { ReadBack } from "./readback.ts";
import { markUndone } from "./record-undone.ts";
import { isSelfRollback, selfReportedDetail, selfReportedReadBack } from "./self-rollback.ts";

/**
 * Result of an undo. An undo that was refused beforehand has 0 attempts. `read_back` is null if no verification is
 * declared or nothing was left to verify.
 */
export type UndoEnd =
  | { ok: true; attempts: number; read_back: ReadBack | null }
  | {
      ok: false;
      attempts: number;
      error: string;
      /**
       * Set if a retry was given up because the resource had changed. The hash is absent if the state could not be
       * read.
       */
      conflict?: { current_hash?: string };
      /** The parts that the undo left alone. */
      left?: readonly LeftPart[];
    };

interface CompleteInput {
  run_id: string;
  step: number;
  actor: string;
  /** The caller, when its only authority is that it opened the run. */
  principal?: string | undefined;
  end: UndoEnd;
  /** Whether the service itself verified the undo. A worker's own verification refunds no limits. */
  own_reader: boolean;
}

export interface CompletedUndo {
  step: number;
  status: "compensated" | "compensation_failed";
  error: string | null;
  unverified: boolean;
  /** Newer steps that were undone together with this one. */
  covers: readonly number[];
  /** Whether the run's own principal reported this result. */
  self_reported: boolean;
  records: LedgerRecord[];
}

export function completeUnit(
  core: EngineCore,
  lease: WorkLease,
  input: CompleteInput,
): UnitOfWork<CompletedUndo> {
  const key = stepKey(input.run_id, input.step);
  return {
    needs: [["runs", input.run_id], ["steps", key], ["payloads", key], leaseNeed(input.run_id)],
    run(tx) {
      renewLease(tx, lease, core.env.now());
      return completeStep(core, tx, input);
    },
  };
}

/** The caller has checked the lease in the same transaction. */
export function completeStep(core: EngineCore, tx: StoreTx, input: CompleteInput): CompletedUndo {
  const { run_id, step: n, actor, end } = input;
  const run = loadSealedRun(tx, run_id);
  const own = isSelfRollback(run, input.principal);
  const step = loadStep(tx, run_id, n);
  if (step.status !== "compensating")
    throw conflictError(
      "compensation_not_begun",
      `step ${n} is ${step.status}: no compensation of it is in progress`,
    );
  const ts_ms = core.env.now();
  const records: LedgerRecord[] = [];
  const write = (part: Pick<RunRecord, "event" | "detail">): LedgerRecord => {
    const record = appendRunRecord(tx, run, {
      ...stepFacts(step),
      actor,
      ts_ms,
      reason: step.reason,
      ...part,
      detail: selfReportedDetail(own, part.detail),
    });
    records.push(record);
    return record;
  };
  const read_back = selfReportedReadBack(own, end.ok ? end.read_back : null);
  if (read_back !== null) {
    write({
      event: read_back.as,
      detail: read_back.as === "verification_failed" ? read_back.mismatch : undefined,
    });
  }
  const error = errorOf(end);
  const covers = step.undo_covers ?? [];
  const unverified = read_back?.as === "unverified";
  if (error === null) {
    const { seq } = write({ event: "compensated", detail: attemptsText(end.attempts) });
    const verified = read_back?.as === "verified" && input.own_reader;
    if (verified) refundUndone(tx, step, ts_ms);
    markUndone(tx, step, seq, unverified);
    records.push(...undoCovered({ core, tx, run, step }, covers, actor, { unverified, verified }));
  } else {
    write({ event: "compensation_failed", detail: error });
    step.status = "compensation_failed";
    step.undo_covers = undefined;
    run.compensation_failed++;
    adjustActiveSteps(tx, step, +1);
  }
  step.error = error;
  tx.put("steps", stepKey(run_id, n), step);
  tx.put("runs", run_id, run);
  const status = error === null ? "compensated" : "compensation_failed";
  return { step: n, status, error, unverified, covers, self_reported: own, records };
}

function errorOf(end: UndoEnd): string | null {
  if (!end.ok && (end.attempts === 0 || end.conflict !== undefined || end.left !== undefined))
    return end.error;
  if (!end.ok) return `${attemptsText(end.attempts) ?? "after 1 attempt"}: ${end.error}`;
  return end.read_back?.as === "verification_failed" ? end.read_back.error : null;
}

function attemptsText(attempts: number): string | undefined {
  return attempts === 1 ? undefined : `after ${attempts} attempts`;
}

/** Removes credentials, values of the call and control characters from a compensator's error message. */
export function cleanError(
  core: EngineCore,
  undo: Pick<UndoCall, "args" | "read_back">,
  text: string,
): string {
  const plain = removeCallValues(text, undo.args, undo.read_back?.arguments)
    .replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, " ")
    .trim();
  return cutText(core.redact(plain), SERVICE_LIMITS.error_chars) || "no reason given";
}
