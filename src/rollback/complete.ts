/** Completing an undo: what the read-back showed, then how it ended, recorded with the step in one unit. */
import { withoutValues } from "../engine/clean-text.ts";
import type { Core } from "../engine/core.ts";
import { stepKey } from "../engine/keys.ts";
import { loadSealedRun, loadStep } from "../engine/load-run.ts";
import { changeStanding } from "../engine/outcome.ts";
import { appendRunRecord, type RunRecord, stepFacts } from "../engine/records.ts";
import { refundUndone } from "../engine/refunds.ts";
import { cutText } from "../kernel/cut.ts";
import { conflict } from "../kernel/errors.ts";
import { LIMITS } from "../kernel/limits.ts";
import type { LedgerRecord } from "../ledger/record.ts";
import type { Tx, Unit } from "../port/store.ts";
import type { UndoCall } from "./classify.ts";
import { undoCovered } from "./covered.ts";
import { type Lease, leaseNeed, renewLease } from "./lease.ts";
import { isOwn, ownDetail, ownReadBack } from "./own.ts";
import type { ReadBack } from "./readback.ts";
import { markUndone } from "./record-undone.ts";

/**
 * How an undo ended; one that was objected to had no attempts. `read_back` is null where none is declared, or where
 * there was nothing to read back.
 */
export type UndoEnd =
  | { ok: true; attempts: number; read_back: ReadBack | null }
  | {
      ok: false;
      attempts: number;
      error: string;
      /** It was not tried again over what another wrote meanwhile; no hash where that could not be looked at. */
      conflict?: { current_hash?: string };
    };

interface CompleteInput {
  run_id: string;
  step: number;
  actor: string;
  /** Who rolls back on no other authority than having opened the run. */
  principal?: string | undefined;
  end: UndoEnd;
  /** Whether the service itself read back; a worker's reading is its word, and gives nothing back. */
  own_reader: boolean;
}

export interface Completed {
  step: number;
  status: "compensated" | "compensation_failed";
  error: string | null;
  unverified: boolean;
  /** Newer steps that are undone with it, where it is. */
  covers: readonly number[];
  /** Whether it is the word of the run's own principal. */
  self_reported: boolean;
  records: LedgerRecord[];
}

export function completeUnit(core: Core, lease: Lease, input: CompleteInput): Unit<Completed> {
  const key = stepKey(input.run_id, input.step);
  return {
    needs: [["runs", input.run_id], ["steps", key], ["payloads", key], leaseNeed(input.run_id)],
    run(tx) {
      renewLease(tx, lease, core.env.now());
      return completeStep(core, tx, input);
    },
  };
}

/** The caller has made sure of the lease, in the same unit. */
export function completeStep(core: Core, tx: Tx, input: CompleteInput): Completed {
  const { run_id, step: n, actor, end } = input;
  const run = loadSealedRun(tx, run_id);
  const own = isOwn(run, input.principal);
  const step = loadStep(tx, run_id, n);
  if (step.status !== "compensating")
    throw conflict(
      "compensation_not_begun",
      `step ${n} is ${step.status}: no compensation of it is under way`,
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
      detail: ownDetail(own, part.detail),
    });
    records.push(record);
    return record;
  };
  const read_back = ownReadBack(own, end.ok ? end.read_back : null);
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
    changeStanding(tx, step, +1);
  }
  step.error = error;
  tx.put("steps", stepKey(run_id, n), step);
  tx.put("runs", run_id, run);
  const status = error === null ? "compensated" : "compensation_failed";
  return { step: n, status, error, unverified, covers, self_reported: own, records };
}

function errorOf(end: UndoEnd): string | null {
  if (!end.ok && (end.attempts === 0 || end.conflict !== undefined)) return end.error;
  if (!end.ok) return `${attemptsText(end.attempts) ?? "after 1 attempt"}: ${end.error}`;
  return end.read_back?.as === "verification_failed" ? end.read_back.error : null;
}

function attemptsText(attempts: number): string | undefined {
  return attempts === 1 ? undefined : `after ${attempts} attempts`;
}

/** What a compensator says of its failure, without credentials, values of the call, or terminal commands. */
export function cleanError(core: Core, undo: Pick<UndoCall, "args" | "read_back">, text: string): string {
  const plain = withoutValues(text, undo.args, undo.read_back?.arguments)
    .replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, " ")
    .trim();
  return cutText(core.redact(plain), LIMITS.error_chars) || "no reason given";
}
