/** Writes fingerprints: of results when an outcome arrives, and of texts that a person gave the run. */
import type { JsonValue } from "../../kernel/json/json.ts";
import { NO_LABELS, toolLabels } from "../../rules/manifest/labels.ts";
import type { ToolManifest } from "../../rules/manifest/types.ts";
import { type CompiledPolicy, MAX_FOLLOWED_VALUES } from "../../rules/policy/compile.ts";
import { type FingerprintMap, fingerprintsOf } from "../../rules/trace/fingerprint.ts";
import { traceValuesOf } from "../../rules/trace/trace-values.ts";
import type { StoreTx } from "../port/store.ts";
import type { RunDoc, StepDoc } from "../runs/run.ts";
import { markKeys } from "./carried.ts";
import {
  type GivenText,
  MAX_LISTED_TEXTS,
  MAX_OPEN_RESULTS,
  type MarkedOrigin,
  markOrigin,
  marksKey,
  newTrace,
  type TraceDoc,
  type TracedTool,
  type TraceMark,
} from "./trace.ts";
import { type TracedRun, tracedRun } from "./traced-run.ts";

/** True if the policy has a flow that follows values. */
export const followsValues = (policy: CompiledPolicy): boolean => policy.carries !== null;

const isSource = (manifest: ToolManifest | null): boolean =>
  manifest !== null && toolLabels(manifest).source.length > 0;

/** The stored state, or a new one. A run whose earlier results were not followed cannot distinguish its values. */
function openTrace(tx: StoreTx, { run_id, has_earlier_calls }: TracedRun): TraceDoc {
  const stored = tx.get("traces", run_id);
  if (stored !== undefined) return structuredClone(stored);
  const trace = newTrace(run_id);
  if (has_earlier_calls) trace.lost = "late";
  return trace;
}

/** Begins the fingerprints of a tree with its first child run, so that the first call of any of its runs is known. */
export function followTree(tx: StoreTx, policy: CompiledPolicy, parent: RunDoc): void {
  if (!followsValues(policy)) return;
  const root = tracedRun(tx, parent, parent.next_step);
  if (tx.get("traces", root.run_id) === undefined) tx.put("traces", root.run_id, openTrace(tx, root));
}

/** Notes an accepted call. From here until its outcome, the result of a source counts as carried by every call. */
export function noteAcceptedCall(
  tx: StoreTx,
  policy: CompiledPolicy,
  own: RunDoc,
  step: StepDoc,
  manifest: ToolManifest | null,
): void {
  if (!followsValues(policy)) return;
  const run = tracedRun(tx, own, step.step);
  const known = tx.get("traces", run.run_id);
  if (known !== undefined && !isSource(manifest)) return;
  const trace = openTrace(tx, run);
  if (isSource(manifest)) {
    trace.open.push(markOrigin(trace, step, tracedTool(step, manifest)));
    if (trace.open.length > MAX_OPEN_RESULTS) trace.lost ??= "open";
    trace.open.splice(0, trace.open.length - MAX_OPEN_RESULTS);
  }
  tx.put("traces", run.run_id, trace);
}

export interface FinishedResult {
  step: StepDoc;
  manifest: ToolManifest | null;
  args: JsonValue | undefined;
  result: JsonValue | undefined;
  /** The reported error, which can hold what a source said. */
  error?: string | undefined;
}

/** Stores the fingerprints of a result. Call it after the step has its new status. */
export function followResult(
  tx: StoreTx,
  policy: CompiledPolicy,
  own: RunDoc,
  { step, manifest, args, result: answer, error }: FinishedResult,
): void {
  if (!followsValues(policy)) return;
  const run = tracedRun(tx, own, own.next_step);
  const known = tx.get("traces", run.run_id);
  if (known === undefined) return;
  const trace = structuredClone(known);
  const origin = markOrigin(trace, step, tracedTool(step, manifest));
  const result = error === undefined || !isSource(manifest) ? answer : [answer ?? null, error];
  const isKnown = step.status === "failed" || (step.status === "succeeded" && answer !== undefined);
  if (isKnown) trace.open = trace.open.filter((open) => !isSameStep(open, origin));
  const max = policy.carries!.max;
  if (result !== undefined) {
    const found = fingerprintsOf(run.salt, traceValuesOf(result, "$result"));
    const marks = new MarkWriter(tx, run.run_id, found);
    if (isSource(manifest)) addForeign(trace, marks, found, origin, max);
    // An undeclared tool vouches for nothing. Neither does a result while a source's own is not known.
    else if (manifest !== null && trace.open.length === 0)
      addGiven(trace, marks, withoutOwn(run.salt, found, args), max);
    marks.write();
  }
  tx.put("traces", run.run_id, trace);
}

function addForeign(
  trace: TraceDoc,
  marks: MarkWriter,
  found: FingerprintMap,
  origin: MarkedOrigin,
  max: number,
): void {
  for (const fingerprint of found.keys()) {
    if (marks.get(fingerprint) !== undefined) continue;
    if (trace.foreign >= max) {
      trace.lost ??= "max";
      return;
    }
    trace.foreign++;
    marks.set(fingerprint, origin);
  }
}

/** Values beyond the maximum are not stored, so they count as foreign once a source returns them. */
function addGiven(trace: TraceDoc, marks: MarkWriter, found: Iterable<number>, max: number): void {
  for (const fingerprint of found) {
    if (trace.given >= max) return;
    if (marks.get(fingerprint) !== undefined) continue;
    trace.given++;
    marks.set(fingerprint, 0);
  }
}

/** A result cannot vouch for what its own call already said. */
function withoutOwn(salt: string, found: FingerprintMap, args: JsonValue | undefined): number[] {
  const own = args === undefined ? new Map() : fingerprintsOf(salt, traceValuesOf(args, "$args"));
  return [...found.keys()].filter((fingerprint) => !own.has(fingerprint));
}

/** Marks every value of a person's texts as given, also those that a source returned before. */
export function giveTexts(
  tx: StoreTx,
  policy: CompiledPolicy,
  run: TracedRun,
  texts: string[],
  at_ms: number,
): GivenText[] {
  const trace = openTrace(tx, run);
  const found = fingerprintsOf(run.salt, traceValuesOf(texts, "$given"));
  const marks = new MarkWriter(tx, run.run_id, found);
  const max = policy.carries?.max ?? MAX_FOLLOWED_VALUES;
  for (const fingerprint of found.keys()) {
    const mark = marks.get(fingerprint);
    if (mark === 0) continue;
    if (trace.given >= max) break;
    trace.given++;
    if (mark !== undefined) trace.foreign--;
    marks.set(fingerprint, 0);
  }
  marks.write();
  const news = texts.map((text): GivenText => ({ at_ms, chars: text.length }));
  trace.texts = [...(trace.texts ?? []), ...news].slice(-MAX_LISTED_TEXTS);
  trace.given_chars = texts.reduce((sum, text) => sum + text.length, trace.given_chars ?? 0);
  tx.put("traces", run.run_id, trace);
  return trace.texts;
}

function tracedTool({ tool, effect }: StepDoc, manifest: ToolManifest | null): TracedTool {
  return { tool, ...(manifest === null ? { ...NO_LABELS, effect } : toolLabels(manifest)) };
}

const isSameStep = ([run, step]: MarkedOrigin, [other, also]: MarkedOrigin): boolean =>
  run === other && step === also;

/** Changes to the parts of a run's fingerprints, each read and written once. */
class MarkWriter {
  private readonly tx: StoreTx;
  private readonly run_id: string;
  private readonly parts = new Map<string, { marks: Record<string, TraceMark>; changed: boolean }>();

  constructor(tx: StoreTx, run_id: string, found: FingerprintMap) {
    this.tx = tx;
    this.run_id = run_id;
    tx.expect(markKeys(run_id, found));
  }

  get(fingerprint: number): TraceMark | undefined {
    return this.part(fingerprint).marks[fingerprint];
  }

  set(fingerprint: number, mark: TraceMark): void {
    const part = this.part(fingerprint);
    part.marks[fingerprint] = mark;
    part.changed = true;
  }

  write(): void {
    for (const [key, { marks, changed }] of this.parts)
      if (changed) this.tx.put("trace_marks", key, { run_id: this.run_id, marks });
  }

  private part(fingerprint: number) {
    const key = marksKey(this.run_id, fingerprint);
    const known = this.parts.get(key);
    if (known !== undefined) return known;
    const part = { marks: { ...this.tx.get("trace_marks", key)?.marks }, changed: false };
    this.parts.set(key, part);
    return part;
  }
}
