/** Writes fingerprints: of results when an outcome arrives, and of texts that a person gave the run. */
import type { JsonValue } from "../../kernel/json/json.ts";
import { NO_LABELS, toolLabels } from "../../rules/manifest/labels.ts";
import type { ToolManifest } from "../../rules/manifest/types.ts";
import type { PolicyCall } from "../../rules/policy/call.ts";
import { type CompiledPolicy, MAX_FOLLOWED_VALUES } from "../../rules/policy/compile.ts";
import { fingerprintsOf } from "../../rules/trace/fingerprint.ts";
import { FingerprintMap } from "../../rules/trace/fingerprint-map.ts";
import { traceValuesOf } from "../../rules/trace/trace-values.ts";
import type { EngineCore } from "../core.ts";
import type { StoreTx } from "../port/store.ts";
import type { RunDoc, StepDoc } from "../runs/run.ts";
import { noteStoreFeeds } from "./built-on.ts";
import { markKeys } from "./carried.ts";
import { noteStoredValues, type StoredValues, storedValues } from "./stores.ts";
import { TenantTrace, tenantKeys, tenantMarkKey } from "./tenant-trace.ts";
import {
  type GivenText,
  MAX_LISTED_TEXTS,
  MAX_OPEN_RESULTS,
  type MarkedOrigin,
  markOrigin,
  marksKey,
  newTrace,
  originOf,
  type TraceDoc,
  type TracedTool,
  type TraceMark,
} from "./trace.ts";
import { type TracedRun, tracedRun } from "./traced-run.ts";

type Core = Pick<EngineCore, "rules" | "storeKey">;

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
  core: Core,
  tx: StoreTx,
  own: RunDoc,
  step: StepDoc,
  { call, manifest }: { call: PolicyCall; manifest: ToolManifest | null },
): void {
  const { policy } = core.rules();
  if (!followsValues(policy)) return;
  const run = tracedRun(tx, own, step.step);
  noteStoredValues(core, tx, call, manifest);
  const stored = storedValues(core, tx, own.tenant, manifest);
  const known = tx.get("traces", run.run_id);
  if (known !== undefined && !isSource(manifest) && stored === null) return;
  const trace = openTrace(tx, run);
  if (stored !== null) noteStoreFeeds(tx, step, stored.writes);
  if (isSource(manifest) || stored !== null) {
    const tool = tracedTool(step, manifest, stored);
    trace.open.push(markOrigin(trace, step, tool));
    if (trace.open.length > MAX_OPEN_RESULTS) trace.lost ??= "open";
    trace.open.splice(0, trace.open.length - MAX_OPEN_RESULTS);
    if (stored?.lost) trace.lost ??= "store";
    noteOpenForTenant(core, tx, own, step, tool);
  }
  tx.put("traces", run.run_id, trace);
}

function noteOpenForTenant(
  core: Core,
  tx: StoreTx,
  { tenant }: RunDoc,
  step: StepDoc,
  tool: TracedTool,
): void {
  const { within_ms } = core.rules().policy.carries!;
  if (within_ms === null) return;
  const state = new TenantTrace(tx, tenantKeys(core, tenant));
  state.addOpen(
    { at_ms: step.intended_ms, run_id: step.run_id, step: step.step },
    tool,
    step.intended_ms - within_ms,
  );
  state.write();
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
  core: Core,
  tx: StoreTx,
  own: RunDoc,
  { step, manifest, args, result: answer, error }: FinishedResult,
): void {
  const { policy } = core.rules();
  if (!followsValues(policy)) return;
  const run = tracedRun(tx, own, own.next_step);
  const known = tx.get("traces", run.run_id);
  if (known === undefined) return;
  const trace = structuredClone(known);
  const stored = storedValues(core, tx, own.tenant, manifest);
  const tool = openedTool(trace, step) ?? tracedTool(step, manifest, stored);
  const isForeign = isSource(manifest) || stored !== null || openedTool(trace, step) !== undefined;
  const origin = markOrigin(trace, step, tool);
  const result = error === undefined || !isForeign ? answer : [answer ?? null, error];
  const isKnown = step.status === "failed" || (step.status === "succeeded" && answer !== undefined);
  if (isKnown) trace.open = trace.open.filter((open) => !isSameStep(open, origin));
  if (stored?.lost) trace.lost ??= "store";
  const max = policy.carries!.max;
  const followed: FollowedResult = { step, tool, result, isForeign, isKnown };
  const foreign = policy.carries!.within_ms === null ? null : shareResult(core, tx, own, trace, followed);
  if (result !== undefined) {
    const found = fingerprintsOf(run.salt, traceValuesOf(result, "$result"));
    const marks = new MarkWriter(tx, run.run_id, found);
    if (isForeign) addForeign(trace, marks, found, origin, max);
    // An undeclared tool vouches for nothing. Neither does a result while a source's own is not known.
    else if (manifest !== null && trace.open.length === 0) {
      const news = withoutOwn(run.salt, found, args);
      addGiven(trace, marks, foreign === null ? news : withoutForeign(found, news, foreign), max);
    }
    marks.write();
  }
  tx.put("traces", run.run_id, trace);
}

interface FollowedResult {
  step: StepDoc;
  tool: TracedTool;
  result: JsonValue | undefined;
  isForeign: boolean;
  isKnown: boolean;
}

/** A source as it was when its call was accepted, if its result was not known until now. */
function openedTool(trace: TraceDoc, { run_id, step }: StepDoc): TracedTool | undefined {
  const open = trace.open.map((mark) => originOf(trace, mark));
  return open.find((one) => one.run_id === run_id && one.step === step)?.labels;
}

/**
 * Follows a result into other runs of the tenant. Returns whether each value of the result, in order, is foreign to the
 * tenant, so that no result vouches for what a source of another run returned.
 */
function shareResult(
  core: Core,
  tx: StoreTx,
  own: RunDoc,
  trace: TraceDoc,
  { step, tool, result, isForeign, isKnown }: FollowedResult,
): boolean[] {
  const { max, within_ms } = core.rules().policy.carries!;
  const state = new TenantTrace(tx, tenantKeys(core, own.tenant));
  const at = { at_ms: step.finished_ms!, run_id: step.run_id, step: step.step };
  if (isForeign && isKnown) state.removeOpen(at);
  const values = result === undefined ? undefined : traceValuesOf(result, "$result");
  const found = values === undefined ? [] : fingerprintsOf(state.keys.salt, values).keys();
  const keys = found.map((fingerprint) => tenantMarkKey(state.keys, fingerprint));
  tx.expect(keys.map((key) => ["tenant_marks", key]));
  if (isForeign) {
    const taken = Math.min(found.length, Math.max(0, max - (trace.shared ?? 0)));
    trace.shared = (trace.shared ?? 0) + taken;
    state.addMarks(keys.slice(0, taken), at, tool);
    if (taken < found.length) state.addOpen({ ...at, lost: "max" }, tool, at.at_ms - within_ms!);
    state.write();
  }
  return keys.map((key) => state.hasOpen || tx.get("tenant_marks", key) !== undefined);
}

/** `foreign` tells it for each of `found`, in order. Values that it does not cover count as foreign. */
function withoutForeign(
  found: FingerprintMap,
  news: readonly number[],
  foreign: readonly boolean[],
): number[] {
  const isForeign = new Map(found.keys().map((fingerprint, i) => [fingerprint, foreign[i] ?? true]));
  return foreign.length === found.size ? news.filter((one) => isForeign.get(one) === false) : [];
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
  const own = args === undefined ? new FingerprintMap() : fingerprintsOf(salt, traceValuesOf(args, "$args"));
  return found.keys().filter((fingerprint) => !own.has(fingerprint));
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

/** With the labels of the values that it reads from a store. */
function tracedTool(
  { tool, effect }: StepDoc,
  manifest: ToolManifest | null,
  stored: StoredValues | null,
): TracedTool {
  const labels = manifest === null ? { ...NO_LABELS, effect } : toolLabels(manifest);
  if (stored === null) return { tool, ...labels };
  return { tool, ...labels, source: [...new Set([...labels.source, ...stored.sources])] };
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
