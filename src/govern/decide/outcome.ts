/** Outcomes of accepted steps, reported by the agent or resolved by an operator. */
import { conflictError, SvcError } from "../../kernel/errors.ts";
import { keyedHash } from "../../kernel/hash.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { parseTemplatePath, readPath, templatePaths } from "../../kernel/paths.ts";
import { cutText } from "../../kernel/text/truncate.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import type { ToolManifest } from "../../rules/manifest/types.ts";
import { removeCallValues } from "../../rules/redact/remove-values.ts";
import type { EngineCore, OperationCaller } from "../core.ts";
import { runToolKey, stepKey } from "../document-keys.ts";
import { noteEarlierResult } from "../flows/earlier-calls.ts";
import { endPlan } from "../plans/plan-progress.ts";
import type { DocKey, StoreTx, UnitOfWork } from "../port/store.ts";
import { appendRunRecord } from "../records.ts";
import { assertRunOwner, loadSealedRun, loadStep } from "../runs/load-run.ts";
import type { OutcomeStatus, PayloadDoc, ReadBy, RunDoc, StepDoc } from "../runs/run.ts";
import { addUndoDeadline, undoDeadlineOf } from "../runs/undo-deadlines.ts";
import { followResult, followsValues } from "../traces/follow.ts";
import { beforeAnswerProblem, beforeRead, resourceHash, stateHash } from "./before-state.ts";
import { policyCall } from "./load-facts.ts";

export interface OutcomeInput {
  status: OutcomeStatus;
  result?: JsonValue | undefined;
  error?: string | undefined;
  /** State before and after the call, as `read_by` read it. */
  before?: JsonValue | undefined;
  after?: JsonValue | undefined;
  read_by?: ReadBy | undefined;
}

export interface OutcomeResult {
  answer: { step: number; status: OutcomeStatus };
  run: RunDoc;
  step: StepDoc;
  manifest: ToolManifest | null;
  records: LedgerRecord[];
}

/** Thrown if the step already has an outcome, from this caller or another. */
export class AlreadyReportedError extends SvcError {
  constructor({ step, status }: StepDoc) {
    super("conflict", `the outcome of step ${step} was already reported (${status})`, {
      cause_code: "outcome_reported",
    });
    this.name = "AlreadyReported";
  }
}

export function outcomeUnit(
  core: EngineCore,
  asking: OperationCaller,
  run_id: string,
  n: number,
  input: OutcomeInput,
): UnitOfWork<OutcomeResult> {
  return {
    needs: finishNeeds(core, run_id, n),
    share: asking.tenant ?? undefined,
    keeps_places: true,
    run(tx) {
      const run = loadSealedRun(tx, run_id);
      assertRunOwner(run, asking);
      const step = loadStep(tx, run_id, n);
      if (step.status !== "intended") throw new AlreadyReportedError(step);
      return finish(core, tx, run, step, { ...input, actor: asking.name, detail: null });
    },
  };
}

interface ResolveInput {
  status: "succeeded" | "failed";
  note: string;
  result?: JsonValue | undefined;
}

/** An operator resolves a step with a missing or uncertain outcome. */
export function resolveUnit(
  core: EngineCore,
  actor: string,
  run_id: string,
  n: number,
  input: ResolveInput,
): UnitOfWork<OutcomeResult> {
  return {
    needs: finishNeeds(core, run_id, n),
    run(tx) {
      const run = loadSealedRun(tx, run_id);
      const step = loadStep(tx, run_id, n);
      if (step.status !== "intended" && step.status !== "uncertain") {
        throw conflictError(
          "step_not_resolvable",
          `step ${n} is ${step.status}; only an intended or uncertain step can be resolved`,
        );
      }
      const detail = `resolved by ${actor}: ${core.redact(input.note)}`;
      const { status, result } = input;
      return finish(core, tx, run, step, { status, result, error: undefined, actor, detail });
    },
  };
}

function finishNeeds(core: EngineCore, run_id: string, n: number): DocKey[] {
  const key = stepKey(run_id, n);
  // A child run reads the state of its root, which is known only once the run is loaded.
  const traced: DocKey[] = followsValues(core.rules().policy) ? [["traces", run_id]] : [];
  return [
    ["runs", run_id],
    ["steps", key],
    ["payloads", key],
    ...traced,
    ...(core.awaited?.get(run_id) ?? []),
  ];
}

/** Maximum prefetch hints per run, for its most recent tools. */
const AWAITED_KEYS = 8;

/**
 * Notes the keys that the step's outcome will read, for prefetching. Helps runs that call the same tools repeatedly.
 */
export function notePrefetchKeys({ awaited }: EngineCore, step: StepDoc): void {
  if (awaited === undefined) return;
  const known = awaited.get(step.run_id) ?? [];
  const news = readBeside(step).filter(([, key]) => !known.some(([, other]) => other === key));
  if (news.length > 0) awaited.set(step.run_id, [...news, ...known].slice(0, AWAITED_KEYS));
}

/** Keys that an outcome reads and only the step determines. */
function readBeside({ run_id, tool, manifest_hash }: StepDoc): DocKey[] {
  const count: DocKey = ["run_tools", runToolKey(run_id, tool)];
  return manifest_hash === null ? [count] : [count, ["manifests", manifest_hash]];
}

interface Finish extends OutcomeInput {
  actor: string;
  detail: string | null;
}

function finish(core: EngineCore, tx: StoreTx, run: RunDoc, step: StepDoc, input: Finish): OutcomeResult {
  const key = stepKey(run.run_id, step.step);
  tx.expect(readBeside(step));
  const payload = tx.get("payloads", key);
  const manifest = step.manifest_hash === null ? null : (tx.get("manifests", step.manifest_hash) ?? null);
  const error = input.error === undefined ? null : cleanError(core, input.error, payload?.args, input.result);
  if (step.status === "uncertain") run.uncertain--;
  else run.open--;

  step.status = input.status;
  step.finished_ms = core.env.now();
  step.error = error;
  step.result_hash = input.result === undefined ? null : keyedHash(run.salt, input.result);
  const before = noteState(run, step, manifest, payload, input);
  const record = appendRunRecord(tx, run, {
    event: input.status,
    actor: input.actor,
    ts_ms: step.finished_ms,
    step: step.step,
    tool: step.tool,
    reason: step.reason,
    detail: input.detail ?? error ?? undefined,
    effect: step.effect ?? undefined,
    args_hash: step.args_hash,
    before_hash: step.before_hash,
    after_hash: step.after_hash,
    result_hash: step.result_hash ?? undefined,
    manifest_version: step.manifest_version ?? undefined,
  });
  if (input.status === "uncertain") {
    run.uncertain++;
    // An operator who resolves the step as succeeded can then undo it.
    if (before !== undefined && payload !== undefined) tx.put("payloads", key, { ...payload, before });
  } else keepForUndo(tx, key, manifest, payload, { ...input, before });
  if (input.status === "succeeded") {
    step.succeeded_seq = record.seq;
    // Without the `before` read that its undo needs, the step has no undo that could expire.
    if (
      manifest?.compensation?.until !== undefined &&
      (manifest.before === undefined || before !== undefined)
    ) {
      const values = { args: payload?.args, result: input.result };
      step.closes_ms = undoDeadlineOf(manifest, step.finished_ms, values);
      addUndoDeadline(tx, step, step.finished_ms);
    }
    adjustActiveSteps(tx, step, +1);
    if (before !== undefined) listTouch(tx, run, step, manifest, payload);
  }
  const { policy } = core.rules();
  if (policy.compares) {
    const call = { ...policyCall(run, step.tool, payload?.args ?? null, manifest), step: step.step };
    noteEarlierResult(core, tx, policy, { call, manifest }, input.result);
  }
  followResult(core, tx, run, {
    step,
    manifest,
    args: payload?.args,
    result: input.result,
    error: input.error,
  });
  if (input.status === "failed") releaseLogicalCall(tx, step);
  const ended = endItsPlan(tx, run, step);
  tx.put("steps", key, step);
  tx.put("runs", run.run_id, run);
  const records = [record, ...ended];
  return { answer: { step: step.step, status: input.status }, run, step, manifest, records };
}

/** Ends the plan of a call that did not succeed. Its approvers assumed success for the later calls. */
function endItsPlan(
  tx: StoreTx,
  run: RunDoc,
  { plan: id, step, status, finished_ms }: StepDoc,
): LedgerRecord[] {
  const plan = id === undefined || status === "succeeded" ? undefined : tx.get("plans", id);
  if (plan?.status !== "approved") return [];
  return endPlan(tx, run, plan, { status: "ended", note: `step ${step} is ${status}`, now: finished_ms! });
}

/** Truncates last, because a partial value or credential is not recognized. */
function cleanError(core: EngineCore, text: string, ...values: (JsonValue | undefined)[]): string {
  return cutText(core.redact(removeCallValues(text, ...values)), SERVICE_LIMITS.error_chars);
}

/** Stores state hashes on the step. Returns the state before the call if it can be stored. */
function noteState(
  run: RunDoc,
  step: StepDoc,
  manifest: ToolManifest | null,
  payload: PayloadDoc | undefined,
  { status, before = payload?.before, after, read_by = "agent" }: Finish,
): JsonValue | undefined {
  const declared = manifest?.before;
  if (declared === undefined || status === "failed" || before === undefined) return undefined;
  if (beforeAnswerProblem(declared, before) !== null) return undefined;
  step.before_by ??= read_by;
  step.before_hash = stateHash(run.salt, declared, before);
  if (after !== undefined) step.after_hash = stateHash(run.salt, declared, after);
  return before;
}

/** Indexes the step by its resource, so that an undo finds other calls on it without reading the entire run. */
function listTouch(
  tx: StoreTx,
  { run_id, salt }: RunDoc,
  { step, succeeded_seq }: StepDoc,
  manifest: ToolManifest | null,
  payload: PayloadDoc | undefined,
): void {
  const args = payload?.args;
  const read = manifest?.before && args !== undefined ? beforeRead(manifest.before, args) : null;
  if (read === null || succeeded_seq === null) return;
  tx.put("touches", stepKey(run_id, step), { run_id, step, thing: resourceHash(salt, read), succeeded_seq });
}

/** Reduces the stored values to those that the undo and its read-back use. */
function keepForUndo(
  tx: StoreTx,
  key: string,
  manifest: ToolManifest | null,
  payload: PayloadDoc | undefined,
  { status, result, before }: Finish,
): void {
  const refs: { [path: string]: JsonValue } = {};
  if (status === "succeeded" && manifest?.compensation) {
    for (const source of undoTemplates(manifest).flatMap(templatePaths)) {
      const path = parseTemplatePath(source);
      // The state before the call is stored once, in full.
      if (path.root === "before") continue;
      const value = readPath(path, { args: payload?.args, result });
      if (value !== undefined) refs[source] = value;
    }
  }
  const kept: PayloadDoc = { refs };
  if (before !== undefined) kept.before = before;
  const refunds = status === "succeeded" && manifest?.verification ? payload?.refunds : undefined;
  if (refunds !== undefined) kept.refunds = refunds;
  if (Object.keys(kept).length === 1 && Object.keys(refs).length === 0) tx.delete("payloads", key);
  else tx.put("payloads", key, kept);
}

function undoTemplates({ compensation, verification, before }: ToolManifest): JsonValue[] {
  return [
    compensation?.args ?? null,
    verification?.args ?? null,
    compensation?.when_absent?.args ?? null,
    before?.args ?? null,
  ];
}

/** Updates the number of a tool's active steps, which `requires` checks. */
export function adjustActiveSteps(tx: StoreTx, step: StepDoc, by: 1 | -1): void {
  const key = runToolKey(step.run_id, step.tool);
  const used = tx.get("run_tools", key);
  tx.put("run_tools", key, {
    run_id: step.run_id,
    tool: step.tool,
    calls: used?.calls ?? 1,
    standing: Math.max(0, (used?.standing ?? 0) + by),
  });
}

/**
 * Releases a logical call, so that the agent can repeat it. If an earlier step is still active, that step holds it
 * again.
 */
export function releaseLogicalCall(tx: StoreTx, step: StepDoc): void {
  if (step.idempotency === null) return;
  const holder = tx.get("idempotency", step.idempotency);
  if (holder?.run_id !== step.run_id || holder.step !== step.step) return;
  for (let at = step.repeat_of; at !== undefined; ) {
    const earlier = tx.get("steps", stepKey(at.run_id, at.step));
    if (earlier !== undefined && earlier.status !== "failed" && earlier.status !== "compensated") {
      tx.put("idempotency", step.idempotency, at);
      return;
    }
    at = earlier?.repeat_of;
  }
  tx.delete("idempotency", step.idempotency);
}
