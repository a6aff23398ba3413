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
import type { EngineCore, IntentCaller } from "../core.ts";
import { runToolKey, stepKey } from "../document-keys.ts";
import { noteEarlierResult } from "../flows/earlier-calls.ts";
import { endPlan } from "../plans/plan-progress.ts";
import type { DocKey, StoreTx, UnitOfWork } from "../port/store.ts";
import { appendRunRecord } from "../records.ts";
import { assertRunOwner, loadSealedRun, loadStep } from "../runs/load-run.ts";
import type { EffectFinding, OutcomeStatus, PayloadDoc, ReadBy, RunDoc, StepDoc } from "../runs/run.ts";
import { addUndoDeadline, undoDeadlineOf } from "../runs/undo-deadlines.ts";
import { noteResourceCall } from "../traces/built-on.ts";
import { followResult, followsValues } from "../traces/follow.ts";
import { adjustActiveSteps, releaseLogicalCall } from "./active-steps.ts";
import { beforeAnswerProblem, beforeRead, resourceHash, stateHash } from "./before-state.ts";
import { checkEffect, effectCheckOf, effectText } from "./effect-check.ts";
import { policyCall } from "./load-facts.ts";

export interface OutcomeInput {
  status: OutcomeStatus;
  result?: JsonValue | undefined;
  error?: string | undefined;
  /** State before and after the call, as `read_by` read it. */
  before?: JsonValue | undefined;
  after?: JsonValue | undefined;
  /** Last answer of the effect check's tool; absent if the check could not be run. */
  observed?: JsonValue | undefined;
  read_by?: ReadBy | undefined;
}

/** `status` is not the reported one if the effect is missing. `effect_check` is absent without a declared check. */
export type OutcomeAnswer = { step: number; status: OutcomeStatus; effect_check?: EffectFinding };

export interface OutcomeResult {
  answer: OutcomeAnswer;
  run: RunDoc;
  step: StepDoc;
  manifest: ToolManifest | null;
  records: LedgerRecord[];
}

/** Cause of the refusal of a second outcome, here and over HTTP. */
export const ALREADY_REPORTED = "outcome_reported";

/** Thrown if the step already has an outcome, from this caller or another. */
export class AlreadyReportedError extends SvcError {
  constructor({ step, status }: StepDoc) {
    super("conflict", `the outcome of step ${step} was already reported (${status})`, {
      cause_code: ALREADY_REPORTED,
    });
    this.name = "AlreadyReported";
  }
}

export function outcomeUnit(
  core: EngineCore,
  asking: IntentCaller,
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
      return finish(core, tx, run, step, { ...input, caller: asking, actor: asking.name, detail: null });
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
      const { status } = input;
      const kept = status === "succeeded" ? tx.get("payloads", stepKey(run_id, n))?.result : undefined;
      const result = input.result ?? kept;
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
  const news = outcomeReads(step).filter(([, key]) => !known.some(([, other]) => other === key));
  if (news.length > 0) awaited.set(step.run_id, [...news, ...known].slice(0, AWAITED_KEYS));
}

/** Keys that an outcome reads and only the step determines. */
function outcomeReads({ run_id, tool, manifest_hash }: StepDoc): DocKey[] {
  const count: DocKey = ["run_tools", runToolKey(run_id, tool)];
  return manifest_hash === null ? [count] : [count, ["manifests", manifest_hash]];
}

interface Finish extends OutcomeInput {
  /** The agent that reports; absent for an operator's resolution. */
  caller?: IntentCaller;
  actor: string;
  detail: string | null;
}

function finish(core: EngineCore, tx: StoreTx, run: RunDoc, step: StepDoc, input: Finish): OutcomeResult {
  const key = stepKey(run.run_id, step.step);
  tx.expect(outcomeReads(step));
  const payload = tx.get("payloads", key);
  const manifest = step.manifest_hash === null ? null : (tx.get("manifests", step.manifest_hash) ?? null);
  const effect = reportedEffect(core, run, manifest, payload, input);
  const { status } = effect;
  const error = errorOf(core, effect, payload, input);
  if (step.status === "uncertain") run.uncertain--;
  else run.open--;

  step.status = status;
  step.finished_ms = core.env.now();
  step.error = error;
  step.result_hash = input.result === undefined ? null : keyedHash(run.salt, input.result);
  const before = noteState(run, step, manifest, payload, input);
  if (effect.found !== undefined) step.effect_check = effect.found;
  if (effect.found !== undefined && effect.found !== "not checked")
    step.effect_check_by = input.read_by ?? "agent";
  const records = outcomeRecords(tx, run, step, input, error);
  if (status === "uncertain") {
    run.uncertain++;
    keepUntilResolved(tx, key, payload, before, effect.found === "missing" ? input.result : undefined);
  } else keepForUndo(tx, key, manifest, payload, { ...input, before });
  if (status === "succeeded") {
    step.succeeded_seq = records[records.length - 1]!.seq;
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
    listResources(core, tx, run, step, { manifest, payload, isRead: before !== undefined });
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
  if (status === "failed") releaseLogicalCall(tx, step);
  records.push(...endItsPlan(tx, run, step));
  tx.put("steps", key, step);
  tx.put("runs", run.run_id, run);
  const checked = effect.found === undefined ? {} : { effect_check: effect.found };
  return { answer: { step: step.step, status, ...checked }, run, step, manifest, records };
}

/** The status to record: a success whose effect is missing is uncertain. `found` is undefined without a check. */
type ReportedEffect = { status: OutcomeStatus; found?: EffectFinding; problem?: string };

/** An operator's resolution is their own word, which no check replaces. */
function reportedEffect(
  core: EngineCore,
  run: RunDoc,
  manifest: ToolManifest | null,
  payload: PayloadDoc | undefined,
  { caller, status, detail, result, before, observed }: Finish,
): ReportedEffect {
  const check = manifest?.effect_check;
  if (check === undefined || status !== "succeeded" || detail !== null) return { status };
  const values = { args: payload?.args, result, before };
  // What an agent says it observed counts only if its run may make the read.
  const isAsked =
    caller !== undefined && effectCheckOf(core.rules().manifests, run, caller, manifest) !== null;
  const { found, mismatch } = checkEffect(check, values, isAsked ? observed : undefined);
  if (found !== "missing") return { status, found };
  const problem = `effect missing: ${check.tool} does not show what the call reported (${mismatch})`;
  return { status: "uncertain", found, problem };
}

function errorOf(
  core: EngineCore,
  { problem }: ReportedEffect,
  payload: PayloadDoc | undefined,
  { error, result }: Finish,
): string | null {
  if (problem !== undefined) return problem;
  return error === undefined ? null : cleanError(core, error, payload?.args, result);
}

/** The record of the outcome, after one of a missing effect. */
function outcomeRecords(
  tx: StoreTx,
  run: RunDoc,
  step: StepDoc,
  input: Finish,
  error: string | null,
): LedgerRecord[] {
  const facts = {
    actor: input.actor,
    ts_ms: step.finished_ms!,
    step: step.step,
    tool: step.tool,
    reason: step.reason,
    effect: step.effect ?? undefined,
    args_hash: step.args_hash,
    manifest_version: step.manifest_version ?? undefined,
  };
  const found = effectText(step);
  const isMissing = step.effect_check === "missing" && input.detail === null;
  const noted = input.detail === null && step.effect_check !== undefined ? found : null;
  const detail = [input.detail ?? error, isMissing ? null : noted].filter((text) => text !== null).join("; ");
  const missing = isMissing
    ? [appendRunRecord(tx, run, { event: "effect_missing", detail: found!, ...facts })]
    : [];
  const { before_hash, after_hash } = step;
  const record = appendRunRecord(tx, run, {
    ...facts,
    event: step.status as OutcomeStatus,
    detail: detail === "" ? undefined : detail,
    before_hash,
    after_hash,
    result_hash: step.result_hash ?? undefined,
  });
  return [...missing, record];
}

/** An operator who resolves the step as succeeded can then undo it. */
function keepUntilResolved(
  tx: StoreTx,
  key: string,
  payload: PayloadDoc | undefined,
  before: JsonValue | undefined,
  result: JsonValue | undefined,
): void {
  if (payload === undefined || (before === undefined && result === undefined)) return;
  const kept = { ...payload };
  if (before !== undefined) kept.before = before;
  if (result !== undefined) kept.result = result;
  tx.put("payloads", key, kept);
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

/** Lists the step by its resource, so that an undo finds other calls on it without reading entire runs. */
function listResources(
  core: EngineCore,
  tx: StoreTx,
  run: RunDoc,
  step: StepDoc,
  {
    manifest,
    payload,
    isRead,
  }: { manifest: ToolManifest | null; payload: PayloadDoc | undefined; isRead: boolean },
): void {
  const args = payload?.args;
  const { succeeded_seq } = step;
  if (manifest === null || args === undefined || succeeded_seq === null) return;
  const { run_id } = run;
  const read = isRead && manifest.before ? beforeRead(manifest.before, args) : null;
  if (read !== null) {
    const thing = resourceHash(run.salt, read);
    tx.put("touches", stepKey(run_id, step.step), { run_id, step: step.step, thing, succeeded_seq });
  }
  if (read !== null || manifest.effect === "read") noteResourceCall(core, tx, run, { step, manifest, args });
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
