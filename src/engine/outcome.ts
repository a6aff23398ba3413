/** Outcomes: what became of an accepted step, told by the agent or, where the agent did not know, by an operator. */
import { cutText } from "../kernel/cut.ts";
import { conflict, SvcError } from "../kernel/errors.ts";
import { keyedHash } from "../kernel/hash.ts";
import type { Json } from "../kernel/json.ts";
import { LIMITS } from "../kernel/limits.ts";
import { parseTemplatePath, readPath, templatePaths } from "../kernel/paths.ts";
import type { LedgerRecord } from "../ledger/record.ts";
import type { Manifest } from "../model/manifest/types.ts";
import type { OutcomeStatus, PayloadDoc, ReadBy, RunDoc, StepDoc } from "../model/run.ts";
import type { Key, Tx, Unit } from "../port/store.ts";
import { answerProblem, beforeRead, stateHash, thingHash } from "./before.ts";
import { withoutValues } from "./clean-text.ts";
import { closesAt, listClosing } from "./closing.ts";
import type { Asking, Core } from "./core.ts";
import { runToolKey, stepKey } from "./keys.ts";
import { loadSealedRun, loadStep, unknownRun } from "./load-run.ts";
import { endPlan } from "./plans/order.ts";
import { appendRunRecord } from "./records.ts";

export interface OutcomeInput {
  status: OutcomeStatus;
  result?: Json | undefined;
  error?: string | undefined;
  /** What was there before the call and after it, by whoever read it. */
  before?: Json | undefined;
  after?: Json | undefined;
  read_by?: ReadBy | undefined;
}

export interface OutcomeResult {
  answer: { step: number; status: OutcomeStatus };
  run: RunDoc;
  step: StepDoc;
  manifest: Manifest | null;
  records: LedgerRecord[];
}

/** The step has an outcome: what was to be recorded, or what another caller recorded, is there. */
export class AlreadyReported extends SvcError {
  constructor({ step, status }: StepDoc) {
    super("conflict", `the outcome of step ${step} was already reported (${status})`, {
      cause_code: "outcome_reported",
    });
    this.name = "AlreadyReported";
  }
}

export function outcomeUnit(
  core: Core,
  asking: Asking,
  run_id: string,
  n: number,
  input: OutcomeInput,
): Unit<OutcomeResult> {
  return {
    needs: finishNeeds(core, run_id, n),
    share: asking.tenant ?? undefined,
    keeps_places: true,
    run(tx) {
      const run = loadSealedRun(tx, run_id);
      if (run.principal !== asking.id) throw unknownRun(run_id);
      const step = loadStep(tx, run_id, n);
      if (step.status !== "intended") throw new AlreadyReported(step);
      return finish(core, tx, run, step, { ...input, actor: asking.name, detail: null });
    },
  };
}

interface ResolveInput {
  status: "succeeded" | "failed";
  note: string;
  result?: Json | undefined;
}

/** An operator says what became of a step whose outcome was not reported or not known. */
export function resolveUnit(
  core: Core,
  actor: string,
  run_id: string,
  n: number,
  input: ResolveInput,
): Unit<OutcomeResult> {
  return {
    needs: finishNeeds(core, run_id, n),
    run(tx) {
      const run = loadSealedRun(tx, run_id);
      const step = loadStep(tx, run_id, n);
      if (step.status !== "intended" && step.status !== "uncertain") {
        throw conflict(
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

function finishNeeds(core: Core, run_id: string, n: number): Key[] {
  const key = stepKey(run_id, n);
  return [["runs", run_id], ["steps", key], ["payloads", key], ...(core.awaited?.get(run_id) ?? [])];
}

/** Of the tools that a run used last. */
const AWAITED_KEYS = 8;

/** So that the outcomes of a run that calls the same tools again and again are known to read their counts and manifests. */
export function awaitOutcome({ awaited }: Core, step: StepDoc): void {
  if (awaited === undefined) return;
  const known = awaited.get(step.run_id) ?? [];
  const news = readBeside(step).filter(([, key]) => !known.some(([, other]) => other === key));
  if (news.length > 0) awaited.set(step.run_id, [...news, ...known].slice(0, AWAITED_KEYS));
}

/** What an outcome reads that only its step tells. */
function readBeside({ run_id, tool, manifest_hash }: StepDoc): Key[] {
  const count: Key = ["run_tools", runToolKey(run_id, tool)];
  return manifest_hash === null ? [count] : [count, ["manifests", manifest_hash]];
}

interface Finish extends OutcomeInput {
  actor: string;
  detail: string | null;
}

function finish(core: Core, tx: Tx, run: RunDoc, step: StepDoc, input: Finish): OutcomeResult {
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
    // Whoever finds out that it succeeded may want to undo it.
    if (before !== undefined && payload !== undefined) tx.put("payloads", key, { ...payload, before });
  } else keepForUndo(tx, key, manifest, payload, { ...input, before });
  if (input.status === "succeeded") {
    step.succeeded_seq = record.seq;
    // Where the read that an undo needs is missing, there is no undo that could close.
    if (
      manifest?.compensation?.until !== undefined &&
      (manifest.before === undefined || before !== undefined)
    ) {
      const values = { args: payload?.args, result: input.result };
      step.closes_ms = closesAt(manifest, step.finished_ms, values);
      listClosing(tx, step, step.finished_ms);
    }
    changeStanding(tx, step, +1);
    if (before !== undefined) listTouch(tx, run, step, manifest, payload);
  }
  if (input.status === "failed") releaseLogicalCall(tx, step);
  const ended = endItsPlan(tx, run, step);
  tx.put("steps", key, step);
  tx.put("runs", run.run_id, run);
  const records = [record, ...ended];
  return { answer: { step: step.step, status: input.status }, run, step, manifest, records };
}

/** What comes behind a planned call that did not succeed was approved for another world. */
function endItsPlan(tx: Tx, run: RunDoc, { plan: id, step, status, finished_ms }: StepDoc): LedgerRecord[] {
  const plan = id === undefined || status === "succeeded" ? undefined : tx.get("plans", id);
  if (plan?.status !== "approved") return [];
  return endPlan(tx, run, plan, { status: "ended", note: `step ${step} is ${status}`, now: finished_ms! });
}

/** Cut last: half a value, or half a credential, is not recognised any more. */
function cleanError(core: Core, text: string, ...values: (Json | undefined)[]): string {
  return cutText(core.redact(withoutValues(text, ...values)), LIMITS.error_chars);
}

/** Puts the hashes of what was read on the step; answers what was there before, where that can be kept. */
function noteState(
  run: RunDoc,
  step: StepDoc,
  manifest: Manifest | null,
  payload: PayloadDoc | undefined,
  { status, before = payload?.before, after, read_by = "agent" }: Finish,
): Json | undefined {
  const declared = manifest?.before;
  if (declared === undefined || status === "failed" || before === undefined) return undefined;
  if (answerProblem(declared, before) !== null) return undefined;
  step.before_by ??= read_by;
  step.before_hash = stateHash(run.salt, declared, before);
  if (after !== undefined) step.after_hash = stateHash(run.salt, declared, after);
  return before;
}

/** So that an undo finds the other calls on its thing without a look at all of the run's. */
function listTouch(
  tx: Tx,
  { run_id, salt }: RunDoc,
  { step, succeeded_seq }: StepDoc,
  manifest: Manifest | null,
  payload: PayloadDoc | undefined,
): void {
  const args = payload?.args;
  const read = manifest?.before && args !== undefined ? beforeRead(manifest.before, args) : null;
  if (read === null || succeeded_seq === null) return;
  tx.put("touches", stepKey(run_id, step), { run_id, step, thing: thingHash(salt, read), succeeded_seq });
}

/** From here on only the values that the declared undo and read-back name are kept. */
function keepForUndo(
  tx: Tx,
  key: string,
  manifest: Manifest | null,
  payload: PayloadDoc | undefined,
  { status, result, before }: Finish,
): void {
  const refs: { [path: string]: Json } = {};
  if (status === "succeeded" && manifest?.compensation) {
    for (const source of undoTemplates(manifest).flatMap(templatePaths)) {
      const path = parseTemplatePath(source);
      // What was there before is kept whole, once.
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

function undoTemplates({ compensation, verification, before }: Manifest): Json[] {
  return [
    compensation?.args ?? null,
    verification?.args ?? null,
    compensation?.when_absent?.args ?? null,
    before?.args ?? null,
  ];
}

/** Counts a tool's standing steps, which is what `requires` asks about. */
export function changeStanding(tx: Tx, step: StepDoc, by: 1 | -1): void {
  const key = runToolKey(step.run_id, step.tool);
  const used = tx.get("run_tools", key);
  tx.put("run_tools", key, {
    run_id: step.run_id,
    tool: step.tool,
    calls: used?.calls ?? 1,
    standing: Math.max(0, (used?.standing ?? 0) + by),
  });
}

/** The logical call may be made again, once no step stands for it: an earlier one that still does takes over. */
export function releaseLogicalCall(tx: Tx, step: StepDoc): void {
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
