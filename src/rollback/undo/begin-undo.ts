/**
 * Begins an undo. One transaction checks the lease, the order and the approval, marks the step `compensating` and
 * records it. The undo tool runs only after that transaction is durable.
 */
import type { ApprovalDoc } from "../../govern/approvals/approval.ts";
import type { EngineCore } from "../../govern/core.ts";
import { runToolKey, stepKey } from "../../govern/document-keys.ts";
import type { DocKey, StoreTx, UnitOfWork } from "../../govern/port/store.ts";
import { loadSealedRun, loadStep } from "../../govern/runs/load-run.ts";
import { ACTIVE_STEP_STATUSES, type RunDoc, type StepDoc } from "../../govern/runs/run.ts";
import { conflictError } from "../../kernel/errors.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import { leaseNeed, renewLease, type WorkLease } from "../lease.ts";
import {
  classifyUndo,
  closedText,
  needsUndo,
  type UndoCall,
  type UndoClassification,
} from "../plan/classify.ts";
import {
  compareCurrentState,
  type OverlappingStep,
  overlapOf,
  type StateConflict,
} from "../plan/conflict.ts";
import type { OverwriteDecision, ReadRequest } from "../ports.ts";
import { coveredText, undoCovered } from "./covered-steps.ts";
import { markBegun, recordUndone } from "./record-undone.ts";
import {
  assertSelfRollbackAllowed,
  isSelfRollback,
  selfOverwriteError,
  selfReportedDetail,
  selfRollbackDenial,
} from "./self-rollback.ts";
import { resolveUndoApproval, type StepInProgress } from "./undo-approval.ts";

interface BeginInput {
  run_id: string;
  step: number;
  actor: string;
  /** The caller, when its only authority is that it opened the run. */
  principal?: string | undefined;
  approve: boolean;
  fresh_approval_id: string;
  /** The caller's copy of the step. It only saves round trips. */
  hints?: Pick<StepDoc, "tool" | "manifest_hash"> | undefined;
  /** Number of steps the caller has checked. Later steps are checked here. */
  known_steps: number;
  /** Dependents that are not undone, as the caller saw them. */
  blocked_by: readonly number[];
  /** Steps on the same resource that may have taken effect after this one. Those that are undone by now are ignored. */
  overlaps: readonly number[];
  /** Current result of the manifest's `before` read, from just before this call. */
  current?: JsonValue | undefined;
  overwrite?: OverwriteDecision | undefined;
  /** Newer steps on the same resource to undo together with this one, as an operator requested. */
  covers?: readonly number[] | undefined;
}

/** `stale`: the run has new steps that may depend on this one, so the caller must load the run again. */
export type BeginResult =
  | { state: "begun"; undo: UndoCall; salt: string; is_over: boolean; records: LedgerRecord[] }
  | { state: "blocked"; blocked_by: readonly number[]; records: LedgerRecord[] }
  | { state: "stale"; records: LedgerRecord[] }
  | { state: "denied"; error: string; records: LedgerRecord[] }
  | { state: "unread"; read: ReadRequest; records: LedgerRecord[] }
  | { state: "conflict"; conflict: StateConflict; records: LedgerRecord[] }
  | { state: "as_before"; covers: readonly number[]; records: LedgerRecord[] }
  | { state: "awaiting"; request: ApprovalDoc; opened: ApprovalDoc | null; records: LedgerRecord[] };

/** Transaction for the holder of the run's lease; it renews the lease. `also` joins it if the undo begins. */
export function beginUnit(
  core: EngineCore,
  lease: WorkLease,
  input: BeginInput,
  also?: (tx: StoreTx) => void,
): UnitOfWork<BeginResult> {
  return {
    needs: beginNeeds(input),
    run(tx) {
      renewLease(tx, lease, core.env.now());
      const result = beginStep(core, tx, input);
      if (result.state === "begun") also?.(tx);
      return result;
    },
  };
}

export function beginNeeds({ run_id, step, hints, overlaps }: BeginInput): DocKey[] {
  const key = stepKey(run_id, step);
  const needs: DocKey[] = [["runs", run_id], ["steps", key], ["payloads", key], leaseNeed(run_id)];
  for (const other of overlaps) needs.push(["steps", stepKey(run_id, other)]);
  if (hints !== undefined) needs.push(["run_tools", runToolKey(run_id, hints.tool)]);
  if (hints?.manifest_hash) needs.push(["manifests", hints.manifest_hash]);
  return needs;
}

/** The caller has checked the lease in the same transaction. */
export function beginStep(core: EngineCore, tx: StoreTx, input: BeginInput): BeginResult {
  const run = loadSealedRun(tx, input.run_id);
  const step = loadStep(tx, input.run_id, input.step);
  const at = { core, tx, run, step };
  const key = stepKey(run.run_id, step.step);
  const manifest = step.manifest_hash === null ? undefined : tx.get("manifests", step.manifest_hash);
  const undo = undoOrRefuse(step, classifyUndo(step, manifest, tx.get("payloads", key), core.env.now()));
  if (input.blocked_by.length > 0)
    return { state: "blocked", blocked_by: [...input.blocked_by], records: [] };
  if (lateDependents(tx, run, input.known_steps)) return { state: "stale", records: [] };
  const own = isSelfRollback(run, input.principal);
  if (own && input.overwrite !== undefined) throw selfOverwriteError();
  if (own) assertSelfRollbackAllowed(core, tx, run, undo.tool);
  const denied = own ? selfRollbackDenial(core, tx, run, undo) : null;
  if (denied !== null) return { state: "denied", error: denied, records: [] };

  const seen = compareCurrentState(run, undo, input, activeOverlaps(tx, step, input));
  if (seen.is === "unread" || seen.is === "conflict") return { ...seen.result, records: [] };
  // If the run's own principal claims that nothing is left to undo, the approval is still required.
  if (seen.is === "as_before" && !own) return nothingToDo(at, input);

  const consent = resolveUndoApproval(at, undo, { ...input, ...seen });
  if (consent.waits_for !== null) {
    tx.put("steps", key, step);
    tx.put("runs", run.run_id, run);
    return {
      state: "awaiting",
      request: consent.waits_for,
      opened: consent.opened,
      records: consent.records,
    };
  }
  if (seen.is === "as_before") {
    const done = nothingToDo(at, input, own);
    return { ...done, records: [...consent.records, ...done.records] };
  }
  const again = step.status === "compensating";
  const over = seen.over === undefined ? "" : `, overwriting later changes: ${core.redact(seen.over)}`;
  const interrupted = again ? ", after an interruption" : "";
  const how = `by ${undo.tool}${interrupted}${coveredText(input.covers)}${over}`;
  step.undo_covers = input.covers;
  const record = markBegun(at, input.actor, selfReportedDetail(own, how));
  tx.put("steps", key, step);
  tx.put("runs", run.run_id, run);
  const is_over = seen.over !== undefined;
  return { state: "begun", undo, salt: run.salt, is_over, records: [...consent.records, record] };
}

function activeOverlaps(tx: StoreTx, step: StepDoc, { run_id, overlaps }: BeginInput): OverlappingStep[] {
  const others = overlaps.map((other) => loadStep(tx, run_id, other));
  return others
    .filter(({ status }) => ACTIVE_STEP_STATUSES.has(status))
    .map((other) => overlapOf(step, other));
}

/** Records the step as undone without a tool call: the current state already equals the state before the call. */
function nothingToDo(at: StepInProgress, input: BeginInput, own = false): BeginResult {
  const covers = input.covers ?? at.step.undo_covers ?? [];
  const detail = selfReportedDetail(own, "nothing to do: the state already equals the one before the call");
  const records = recordUndone(at, input.actor, detail);
  return { state: "as_before", covers, records: [...records, ...undoCovered(at, covers, input.actor)] };
}

function undoOrRefuse(step: StepDoc, classified: UndoClassification | null): UndoCall {
  const n = step.step;
  if (classified === null) {
    const why =
      step.status === "compensated"
        ? "is already compensated"
        : `is ${step.status}: there is nothing to undo`;
    throw conflictError("already_compensated", `step ${n} ${why}`, { step_status: step.status });
  }
  if (classified.kind === "compensate") return classified.undo;
  const closed = classified.kind === "unrecoverable" && classified.closed === true;
  const why: Record<Exclude<UndoClassification["kind"], "compensate">, string> = {
    skip: `${step.tool} needs no undo`,
    unrecoverable: closed
      ? closedText(step.closes_ms!)
      : `${step.tool} is irreversible, or the arguments of its compensation are not available`,
    unresolved: `its outcome is unknown (${step.status}); resolve it first`,
    unmanifested: `${step.tool} had no manifest`,
  };
  throw conflictError(
    "not_compensable",
    `step ${n} is not compensable: ${why[classified.kind]}`,
    closed ? { closed } : undefined,
  );
}

/**
 * Whether a step added during the rollback may depend on an earlier one. An agent can keep working while its run is
 * undone.
 */
function lateDependents(tx: StoreTx, run: RunDoc, known_steps: number): boolean {
  for (let n = known_steps; n < run.next_step; n++) {
    const late = tx.get("steps", stepKey(run.run_id, n));
    if (late === undefined || !needsUndo(late)) continue;
    if (late.depends_on.length > 0 || late.requires.length > 0) return true;
  }
  return false;
}
