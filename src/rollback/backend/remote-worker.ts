/**
 * Compensations by a remote worker: the worker begins one, carries it out and reports the result. The run's lease
 * authorizes the worker. If the worker never reports, the step is free again when the lease lapses.
 */
import type { EngineCore, OperationCaller } from "../../govern/core.ts";
import { stepKey } from "../../govern/document-keys.ts";
import { joinOnFailedUndos } from "../../govern/incidents/join-incident.ts";
import type { StoreTx } from "../../govern/port/store.ts";
import { loadStep } from "../../govern/runs/load-run.ts";
import type { StepDoc } from "../../govern/runs/run.ts";
import { conflictError, notFoundError } from "../../kernel/errors.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import { dropLease, leaseHolder, leaseNeed, leaseOfHolder, takeLease, WORKER_LEASE_MS } from "../lease.ts";
import { classifyUndo, type UndoCall } from "../plan/classify.ts";
import { markUnfinished, settleStep } from "../plan/leftovers.ts";
import { loadGroup, loadOverlappingSteps, loadRunDoc } from "../plan/load-run.ts";
import type { CompensationCall, OverwriteDecision, ReadRequest } from "../ports.ts";
import { type BeginResult, beginNeeds, beginStep } from "../undo/begin-undo.ts";
import { type CompletedUndo, cleanError, completeStep, type UndoEnd } from "../undo/complete-undo.ts";
import { cannotVerify, compareReadBack, type ReadBack } from "../undo/readback.ts";

const MAX_LOOKS = 20;
/** Limit on blocking steps in the response field, which also has to fit a header. The message names all of them. */
const MAX_NAMED_BLOCKERS = 500;

export interface CompensationTask extends CompensationCall {
  /** Newer steps undone with this one, when the state from before the run is restored. */
  covers?: readonly number[];
  /** Approval that the undo used, whose signatures the worker may read. */
  approval_id?: string;
  /** Verification to run after the undo; null if none is declared or its arguments are not available. */
  verification: (ReadRequest & { expect: JsonValue }) | null;
}

export interface WorkerOutcome {
  status: "succeeded" | "failed";
  error?: string | undefined;
  attempts?: number | undefined;
  /** Result of the verification read, if the worker made one. */
  observed?: JsonValue | undefined;
}

/** State that the worker read, if the step has a `before`, and an operator's overwrite, if any. */
interface WorkerView {
  current?: JsonValue | undefined;
  overwrite?: OverwriteDecision | undefined;
}

/** Response when the state already equals the one before the call: the step is recorded as undone. */
export interface AlreadyUndone {
  run_id: string;
  step: number;
  status: "compensated";
  covers?: readonly number[];
}

/** The remote caller that carries out the undo. The run's own principal only self-reports. */
export type RemoteWorker = OperationCaller & { self_reports?: boolean };

const workerHolder = (asking: RemoteWorker, step: number): string => `worker/${step}/${asking.id}`;

/** Throws a conflict if the step is blocked, already undone, not undoable, or awaiting approval. */
export async function beginCompensation(
  core: EngineCore,
  asking: RemoteWorker,
  run_id: string,
  n: number,
  seen: WorkerView = {},
): Promise<CompensationTask | AlreadyUndone> {
  for (let looks = 0; looks < MAX_LOOKS; looks++) {
    const { begun, first, covers } = await tryBegin(core, asking, run_id, n, seen);
    if (begun.records.length > 0) core.listeners.recorded(begun.records);
    if (begun.state === "begun") return { ...taskOf(run_id, first, begun.undo), ...coversField(covers) };
    if (begun.state === "as_before")
      return { run_id, step: first.step, status: "compensated", ...coversField(begun.covers) };
    if (begun.state === "denied")
      throw conflictError("compensation_denied", `step ${n}: ${begun.error}`, { denied: true });
    if (begun.state === "unread")
      throw conflictError(
        "read_first",
        `step ${n}: read ${begun.read.tool} first, with the arguments from the plan, and send the result as current, so that no external change is lost`,
        { read_first: begun.read.tool },
      );
    if (begun.state === "conflict") {
      const { error, current_hash } = begun.conflict;
      throw conflictError("written_since", error, { conflict: true, current_hash });
    }
    if (begun.state === "blocked") {
      throw conflictError(
        "not_its_turn",
        `step ${n} cannot be undone yet: step ${begun.blocked_by.join(", ")} depends on it and is not undone`,
        { blocked_by: begun.blocked_by.slice(0, MAX_NAMED_BLOCKERS) },
      );
    }
    if (begun.state === "awaiting") {
      if (begun.opened !== null) core.listeners.approvalRequested(begun.opened);
      throw conflictError(
        "approval_required",
        `approval required: request ${begun.request.id} is pending an operator decision; retry after it is approved`,
        { approval_id: begun.request.id },
      );
    }
  }
  throw conflictError("run_growing", `run ${run_id} keeps taking new steps; halt its agent and try again`);
}

async function tryBegin(
  core: EngineCore,
  asking: RemoteWorker,
  run_id: string,
  n: number,
  { current, overwrite }: WorkerView,
): Promise<{ begun: BeginResult; first: StepDoc; covers: readonly number[] }> {
  const run = await loadRunDoc(core.store, run_id);
  const step = await core.store.get("steps", stepKey(run_id, n));
  if (step === undefined) throw notFoundError(`run ${run_id} has no step ${n}`, "unknown_step");
  const group = await loadGroup(core.store, run, step, overwrite);
  const [first, ...newer] = group.steps;
  const covers = newer.map((covered) => covered.step);
  const input = {
    run_id,
    step: first.step,
    actor: asking.name,
    principal: asking.self_reports ? asking.id : undefined,
    approve: false,
    fresh_approval_id: `apr_${core.env.uuid()}`,
    known_steps: run.next_step,
    blocked_by: group.blocked_by,
    overlaps: (await loadOverlappingSteps(core.store, run, first)).filter((other) => !covers.includes(other)),
    hints: first,
    current,
    overwrite,
    covers: covers.length === 0 ? undefined : covers,
  };
  const begun = await core.store.transact({
    needs: beginNeeds(input),
    run(tx: StoreTx): BeginResult {
      const lease = takeLease(core, tx, run_id, workerHolder(asking, first.step), WORKER_LEASE_MS);
      const result = beginStep(core, tx, input);
      if (result.state !== "begun") dropLease(tx, lease);
      if (result.state === "begun") markUnfinished(tx, run_id);
      else if (result.state === "conflict") {
        settleStep(tx, run_id, n, "conflict");
        joinOnFailedUndos(core, tx, run_id, { failed: [], conflicts: [n] });
      } else if (result.state === "as_before")
        for (const step of [first.step, ...covers]) settleStep(tx, run_id, step, null);
      return result;
    },
  });
  return { begun, first, covers };
}

const coversField = (covers: readonly number[]) => (covers.length === 0 ? {} : { covers });

function taskOf(
  run_id: string,
  { step, tool: original_tool, undo_request }: StepDoc,
  undo: UndoCall,
): CompensationTask {
  const { read_back } = undo;
  const readable = read_back !== null && read_back.arguments !== undefined;
  return {
    run_id,
    step,
    tool: undo.tool,
    original_tool,
    args: undo.args,
    idempotency_key: undo.idempotency_key,
    ...(undo_request === undefined ? {} : { approval_id: undo_request }),
    verification: readable
      ? { tool: read_back.tool, arguments: read_back.arguments!, expect: read_back.expect }
      : null,
  };
}

/** Whether the caller is the worker that carries out the undo of this step now. */
export async function carriesOut(
  core: EngineCore,
  asking: OperationCaller,
  run_id: string,
  n: number,
): Promise<boolean> {
  return (await leaseHolder(core, run_id)) === workerHolder(asking, n);
}

/** Accepts the result from the worker that began the step. Any other worker gets a conflict. */
export async function completeCompensation(
  core: EngineCore,
  asking: RemoteWorker,
  run_id: string,
  n: number,
  outcome: WorkerOutcome,
): Promise<{ step: number; status: CompletedUndo["status"]; unverified?: true }> {
  const key = stepKey(run_id, n);
  const done = await core.store.transact({
    needs: [["runs", run_id], ["steps", key], ["payloads", key], leaseNeed(run_id)],
    run(tx: StoreTx): CompletedUndo {
      const undo = begunUndo(tx, run_id, n);
      const lease = leaseOfHolder(tx, run_id, workerHolder(asking, n));
      if (lease === undefined) {
        throw conflictError(
          "compensation_of_another",
          `the compensation of step ${n} was not started by you, or was taken over by another worker`,
        );
      }
      const completed = completeStep(core, tx, {
        run_id,
        step: n,
        actor: asking.name,
        principal: asking.self_reports ? asking.id : undefined,
        end: endOf(core, undo, outcome),
        own_reader: false,
      });
      for (const step of [n, ...completed.covers])
        settleStep(tx, run_id, step, completed.unverified ? "unverified" : null);
      if (completed.status === "compensation_failed")
        joinOnFailedUndos(core, tx, run_id, { failed: [n], conflicts: [] });
      dropLease(tx, lease);
      return completed;
    },
  });
  core.listeners.recorded(done.records);
  const { step, status, self_reported, unverified } = done;
  return { step, status, ...(self_reported && unverified ? { unverified } : {}) };
}

/** An undo that began before its deadline can be reported after it, so no deadline applies. */
const BEGUN_IN_TIME = 0;

function begunUndo(tx: StoreTx, run_id: string, n: number): UndoCall {
  const step = loadStep(tx, run_id, n);
  if (step.status !== "compensating")
    throw conflictError(
      "compensation_not_begun",
      `step ${n} is ${step.status}: no compensation of it is in progress`,
    );
  const manifest = step.manifest_hash === null ? undefined : tx.get("manifests", step.manifest_hash);
  const classified = classifyUndo(step, manifest, tx.get("payloads", stepKey(run_id, n)), BEGUN_IN_TIME);
  if (classified?.kind !== "compensate")
    throw conflictError("compensation_lost", `the compensation of step ${n} can no longer be reported`);
  return classified.undo;
}

function endOf(core: EngineCore, undo: UndoCall, outcome: WorkerOutcome): UndoEnd {
  const attempts = outcome.attempts ?? 1;
  if (outcome.status === "failed")
    return { ok: false, attempts, error: cleanError(core, undo, outcome.error ?? "") };
  return { ok: true, attempts, read_back: readBackOf(undo, outcome.observed) };
}

function readBackOf({ read_back }: UndoCall, observed: JsonValue | undefined): ReadBack | null {
  if (read_back === null) return null;
  if (read_back.arguments === undefined) return cannotVerify();
  return observed === undefined ? { as: "unverified" } : compareReadBack(read_back, observed);
}
