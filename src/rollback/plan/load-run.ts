/** Loads the data for a rollback: the run, its steps, their manifests and the stored values. */
import { resourceHash } from "../../govern/decide/before-state.ts";
import { stepKey } from "../../govern/document-keys.ts";
import { allRows, rowPages } from "../../govern/port/pages.ts";
import type { StateStore } from "../../govern/port/store.ts";
import { touchOwner } from "../../govern/port/tables.ts";
import { assertSealed, unknownRun } from "../../govern/runs/load-run.ts";
import {
  ACTIVE_STEP_STATUSES,
  type PayloadDoc,
  type RunDoc,
  type StepDoc,
  UNKNOWN_OUTCOME_STATUSES,
} from "../../govern/runs/run.ts";
import { type PausableWork, runAtOnce } from "../../kernel/pausable-work.ts";
import type { ToolManifest } from "../../rules/manifest/types.ts";
import { type DrillDoc, describeProof, undoProofOf } from "../../rules/undo-proof.ts";
import type { OverwriteDecision } from "../ports.ts";
import { classifyUndo, needsUndo, type StateCheck } from "./classify.ts";
import { listStateful, readStates, type StateReader } from "./current-state.ts";
import { DependentSteps } from "./dependents.ts";
import { addStatesBeforeRun, planRollbackPaced, type RollbackPlan } from "./plan.ts";
import { hasComparableReads } from "./steps-by-resource.ts";

const AT_ONCE = 64;

export interface LoadedRun {
  run: RunDoc;
  /** Every step of the run, oldest first. */
  steps: StepDoc[];
  manifests: Map<string, ToolManifest>;
  /** Indexed by step number. */
  payloads: (PayloadDoc | undefined)[];
}

export interface PlanOptions {
  now_ms?: number;
  mask?: boolean;
  stateReader?: StateReader | null;
  /** Runs long work in turns. Default: all at once. */
  pace?: <T>(work: PausableWork<T>) => T | Promise<T>;
}

/** Returns the plan of a run as stored. Throws not_found for an unknown run. */
export async function loadPlan(
  store: StateStore,
  run_id: string,
  { now_ms = 0, mask, stateReader, pace = runAtOnce }: PlanOptions = {},
): Promise<RollbackPlan> {
  const loaded = await loadForRollback(store, run_id);
  const states = stateReader ? await readStates([loaded], stateReader, now_ms) : null;
  const { run, steps, manifests, payloads } = loaded;
  const plan = await pace(planRollbackPaced(run, steps, manifests, payloads, { now_ms, mask, states }));
  if (states !== null) addStatesBeforeRun(plan, listStateful(loaded, now_ms), { mask });
  await addProofs(store, plan, steps);
  return plan;
}

/** Adds the drill results for each undo, for the manifest that the step was accepted under. */
export async function addProofs(
  store: StateStore,
  plan: RollbackPlan,
  steps: readonly StepDoc[],
): Promise<void> {
  const undos = plan.actions.filter((action) => action.kind === "compensate");
  const drills = new Map<string, DrillDoc>();
  await eachOf([...new Set(undos.map(({ tool }) => tool))], async (tool) => {
    const drill = await store.get("drills", tool);
    if (drill !== undefined) drills.set(tool, drill);
  });
  for (const undo of undos)
    undo.proof = describeProof(undoProofOf(drills.get(undo.tool), steps[undo.step]?.manifest_hash ?? ""));
}

export async function loadForRollback(store: StateStore, run_id: string): Promise<LoadedRun> {
  const run = await loadRunDoc(store, run_id);
  const steps = await listSteps(store, run_id, 0);
  const active = steps.filter((step) => ACTIVE_STEP_STATUSES.has(step.status) && step.manifest_hash !== null);
  const hashes = [...new Set(active.map((step) => step.manifest_hash!))];
  const manifests = new Map<string, ToolManifest>();
  await eachOf(hashes, async (hash) => {
    const manifest = await store.get("manifests", hash);
    if (manifest !== undefined) manifests.set(hash, manifest);
  });
  const payloads = new Array<PayloadDoc | undefined>(run.next_step).fill(undefined);
  const undoable = active.filter((step) => step.compensation_tool !== null);
  await eachOf(undoable, async ({ step }) => {
    payloads[step] = await store.get("payloads", stepKey(run_id, step));
  });
  return { run, steps, manifests, payloads };
}

export async function loadRunDoc(store: StateStore, run_id: string): Promise<RunDoc> {
  const run = await store.get("runs", run_id);
  if (run === undefined) throw unknownRun(run_id);
  assertSealed(run);
  return run;
}

/** Steps after `after` that are active or have an unknown outcome, oldest first. */
function listActiveAfter(store: StateStore, run_id: string, after: number): Promise<StepDoc[]> {
  return listSteps(store, run_id, after + 1, [...ACTIVE_STEP_STATUSES, ...UNKNOWN_OUTCOME_STATUSES]);
}

/** Steps on the same resource with an undo to run and comparable reads, oldest first. */
async function loadOnResource(store: StateStore, { salt }: RunDoc, step: StepDoc): Promise<StepDoc[]> {
  const state = step.before_hash === undefined ? null : await stateOf(store, step);
  if (state === null) return [step];
  const found: StepDoc[] = [];
  const owner = touchOwner(step.run_id, resourceHash(salt, state.read));
  for await (const { key } of allRows(store, "touches", { owner })) {
    const other = await store.get("steps", key);
    const read = other === undefined ? null : await stateOf(store, other);
    if (read !== null && hasComparableReads(read, state)) found.push(other!);
  }
  return found.sort((a, b) => a.step - b.step);
}

/** Steps that are undone as one, oldest first, and the steps that block them. */
export interface UndoGroup {
  steps: readonly [StepDoc, ...StepDoc[]];
  blocked_by: readonly number[];
}

/** The step alone; or, to restore the state from before the run, with the older steps on its resource. */
export async function loadGroup(
  store: StateStore,
  run: RunDoc,
  step: StepDoc,
  overwrite: OverwriteDecision | undefined,
): Promise<UndoGroup> {
  if (overwrite?.to !== "before_run")
    return { steps: [step], blocked_by: await loadBlockers(store, run.run_id, [step]) };
  const all = await loadOnResource(store, run, step);
  const [first = step, ...rest] = all.filter((other) => other.step <= step.step);
  const steps = [first, ...rest] as const;
  const newer = all.filter((other) => other.step > step.step).map((other) => other.step);
  return { steps, blocked_by: newer.length > 0 ? newer : await loadBlockers(store, run.run_id, steps) };
}

/** Dependents outside the group that are not undone. */
async function loadBlockers(
  store: StateStore,
  run_id: string,
  group: readonly StepDoc[],
): Promise<readonly number[]> {
  const own = new Map(group.map((doc) => [doc.step, doc]));
  const dependents = new DependentSteps();
  for (const later of (await listActiveAfter(store, run_id, Math.min(...own.keys()))).toReversed())
    if (!own.has(later.step))
      dependents.hold(later, needsUndo(later) ? [later.step] : dependents.blockersOf(later));
  const found = new Set(group.flatMap((doc) => dependents.blockersOf(doc)));
  return [...found].sort((a, b) => a - b);
}

/** Active steps on the same resource that may have taken effect after this one. */
export async function loadOverlappingSteps(
  store: StateStore,
  { salt }: RunDoc,
  step: StepDoc,
): Promise<number[]> {
  const state = step.before_hash === undefined ? null : await stateOf(store, step);
  if (state === null) return [];
  const owner = touchOwner(step.run_id, resourceHash(salt, state.read));
  const overlaps: number[] = [];
  for await (const { key, doc } of allRows(store, "touches", { owner, from: step.intended_seq + 1 })) {
    const other = doc.step === step.step ? undefined : await store.get("steps", key);
    if (other !== undefined && (await stateOf(store, other)) !== null) overlaps.push(other.step);
  }
  return overlaps;
}

async function stateOf(store: StateStore, doc: StepDoc): Promise<StateCheck | null> {
  const payload = await store.get("payloads", stepKey(doc.run_id, doc.step));
  const manifest = doc.manifest_hash === null ? undefined : await store.get("manifests", doc.manifest_hash);
  const classified = classifyUndo(doc, manifest, payload, 0);
  return classified?.kind === "compensate" ? classified.undo.state : null;
}

async function listSteps(
  store: StateStore,
  run_id: string,
  from: number,
  tag?: readonly string[],
): Promise<StepDoc[]> {
  const steps: StepDoc[] = [];
  for await (const rows of rowPages(store, "steps", { owner: run_id, tag, from, order: "asc" }))
    for (const row of rows) steps.push(row.doc);
  return steps;
}

/** Works on a few items at a time: enough to hide a database's latency without flooding it. */
async function eachOf<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  for (let i = 0; i < items.length; i += AT_ONCE) await Promise.all(items.slice(i, i + AT_ONCE).map(work));
}
