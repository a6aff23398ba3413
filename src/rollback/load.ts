/** Reading all that a rollback looks at: the run, its steps, the manifests they ran under, the kept values. */
import { thingHash } from "../engine/before.ts";
import { stepKey } from "../engine/keys.ts";
import { assertSealed, unknownRun } from "../engine/load-run.ts";
import { doAtOnce, type Paced } from "../kernel/turns.ts";
import type { Manifest } from "../model/manifest/types.ts";
import { type DrillDoc, proofOf, proofWords } from "../model/proof.ts";
import { type PayloadDoc, type RunDoc, STANDING, type StepDoc, UNKNOWN } from "../model/run.ts";
import { allRows, rowPages } from "../port/pages.ts";
import type { Store } from "../port/store.ts";
import { touchOwner } from "../port/tables.ts";
import { classify, needsUndo, type StateCheck } from "./classify.ts";
import { Dependents } from "./dependents.ts";
import { type Lookout, listStateful, readStates } from "./look.ts";
import { addStatesBeforeRun, planningRollback, type RollbackPlan } from "./plan.ts";
import type { Overwrite } from "./ports.ts";
import { isCountedAlike } from "./things.ts";

/** All steps end up in memory anyway; pages only keep one answer of the store bounded. */
const PAGE = 20_000;
const AT_ONCE = 64;

export interface Loaded {
  run: RunDoc;
  /** Every step of the run, oldest first. */
  steps: StepDoc[];
  manifests: Map<string, Manifest>;
  /** By step number. */
  payloads: (PayloadDoc | undefined)[];
}

interface PlanOptions {
  now_ms?: number;
  mask?: boolean;
  lookout?: Lookout | null;
  /** How long work is done; at once where nothing is said. */
  pace?: <T>(work: Paced<T>) => T | Promise<T>;
}

/** The plan of a run as it stands in the store; throws not_found for an unknown run. */
export async function loadPlan(
  store: Store,
  run_id: string,
  { now_ms = 0, mask, lookout, pace = doAtOnce }: PlanOptions = {},
): Promise<RollbackPlan> {
  const loaded = await loadForRollback(store, run_id);
  const states = lookout ? await readStates([loaded], lookout, now_ms) : null;
  const { run, steps, manifests, payloads } = loaded;
  const plan = await pace(planningRollback(run, steps, manifests, payloads, { now_ms, mask, states }));
  if (states !== null) addStatesBeforeRun(plan, listStateful(loaded, now_ms), { mask });
  await addProofs(store, plan, steps);
  return plan;
}

/** What is known of each undo by having tried it, for the manifest that the step was accepted under. */
async function addProofs(store: Store, plan: RollbackPlan, steps: readonly StepDoc[]): Promise<void> {
  const undos = plan.actions.filter((action) => action.kind === "compensate");
  const drills = new Map<string, DrillDoc>();
  await eachOf([...new Set(undos.map(({ tool }) => tool))], async (tool) => {
    const drill = await store.get("drills", tool);
    if (drill !== undefined) drills.set(tool, drill);
  });
  for (const undo of undos)
    undo.proof = proofWords(proofOf(drills.get(undo.tool), steps[undo.step]?.manifest_hash ?? ""));
}

export async function loadForRollback(store: Store, run_id: string): Promise<Loaded> {
  const run = await loadRunDoc(store, run_id);
  const steps = await listSteps(store, run_id, 0);
  const standing = steps.filter((step) => STANDING.has(step.status) && step.manifest_hash !== null);
  const hashes = [...new Set(standing.map((step) => step.manifest_hash!))];
  const manifests = new Map<string, Manifest>();
  await eachOf(hashes, async (hash) => {
    const manifest = await store.get("manifests", hash);
    if (manifest !== undefined) manifests.set(hash, manifest);
  });
  const payloads = new Array<PayloadDoc | undefined>(run.next_step).fill(undefined);
  const undoable = standing.filter((step) => step.compensation_tool !== null);
  await eachOf(undoable, async ({ step }) => {
    payloads[step] = await store.get("payloads", stepKey(run_id, step));
  });
  return { run, steps, manifests, payloads };
}

export async function loadRunDoc(store: Store, run_id: string): Promise<RunDoc> {
  const run = await store.get("runs", run_id);
  if (run === undefined) throw unknownRun(run_id);
  assertSealed(run);
  return run;
}

/** The steps behind `after` that stand or may stand, oldest first. */
function listStanding(store: Store, run_id: string, after: number): Promise<StepDoc[]> {
  return listSteps(store, run_id, after + 1, [...STANDING, ...UNKNOWN]);
}

/** The steps on the same resource that are not undone, whichever way, oldest first; their reads count the same. */
async function loadOnResource(store: Store, { salt }: RunDoc, step: StepDoc): Promise<StepDoc[]> {
  const state = step.before_hash === undefined ? null : await stateOf(store, step);
  if (state === null) return [step];
  const found: StepDoc[] = [];
  const owner = touchOwner(step.run_id, thingHash(salt, state.read));
  for await (const { key } of allRows(store, "touches", { owner })) {
    const other = await store.get("steps", key);
    const read = other === undefined ? null : await stateOf(store, other);
    if (read !== null && isCountedAlike(read, state)) found.push(other!);
  }
  return found.sort((a, b) => a.step - b.step);
}

/** Steps that are undone as one, oldest first, and the steps that have to be undone before them. */
export interface UndoGroup {
  steps: readonly [StepDoc, ...StepDoc[]];
  blocked_by: readonly number[];
}

/** The step alone; or, to restore what was there before the run, with the older ones on its resource. */
export async function loadGroup(
  store: Store,
  run: RunDoc,
  step: StepDoc,
  overwrite: Overwrite | undefined,
): Promise<UndoGroup> {
  if (overwrite?.to !== "before_run")
    return { steps: [step], blocked_by: await loadBlockers(store, run.run_id, [step]) };
  const all = await loadOnResource(store, run, step);
  const [first = step, ...rest] = all.filter((other) => other.step <= step.step);
  const steps = [first, ...rest] as const;
  const newer = all.filter((other) => other.step > step.step).map((other) => other.step);
  return { steps, blocked_by: newer.length > 0 ? newer : await loadBlockers(store, run.run_id, steps) };
}

/** Dependents outside the group that are not undone, for a group of steps that is undone as one. */
async function loadBlockers(
  store: Store,
  run_id: string,
  group: readonly StepDoc[],
): Promise<readonly number[]> {
  const own = new Map(group.map((doc) => [doc.step, doc]));
  const dependents = new Dependents();
  for (const later of (await listStanding(store, run_id, Math.min(...own.keys()))).toReversed())
    if (!own.has(later.step))
      dependents.hold(later, needsUndo(later) ? [later.step] : dependents.blockersOf(later));
  const found = new Set(group.flatMap((doc) => dependents.blockersOf(doc)));
  return [...found].sort((a, b) => a - b);
}

/** The steps on the same thing that stand and may have taken effect after this one: no other is looked at. */
export async function loadBeside(store: Store, { salt }: RunDoc, step: StepDoc): Promise<number[]> {
  const state = step.before_hash === undefined ? null : await stateOf(store, step);
  if (state === null) return [];
  const owner = touchOwner(step.run_id, thingHash(salt, state.read));
  const beside: number[] = [];
  for await (const { key, doc } of allRows(store, "touches", { owner, from: step.intended_seq + 1 })) {
    const other = doc.step === step.step ? undefined : await store.get("steps", key);
    if (other !== undefined && (await stateOf(store, other)) !== null) beside.push(other.step);
  }
  return beside;
}

async function stateOf(store: Store, doc: StepDoc): Promise<StateCheck | null> {
  const payload = await store.get("payloads", stepKey(doc.run_id, doc.step));
  const manifest = doc.manifest_hash === null ? undefined : await store.get("manifests", doc.manifest_hash);
  const standing = classify(doc, manifest, payload, 0);
  return standing?.kind === "compensate" ? standing.undo.state : null;
}

async function listSteps(
  store: Store,
  run_id: string,
  from: number,
  tag?: readonly string[],
): Promise<StepDoc[]> {
  const steps: StepDoc[] = [];
  for await (const rows of rowPages(store, "steps", { owner: run_id, tag, from, order: "asc", page: PAGE }))
    for (const row of rows) steps.push(row.doc);
  return steps;
}

/** A few at a time: enough to hide the way to a database, not enough to flood it. */
async function eachOf<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  for (let i = 0; i < items.length; i += AT_ONCE) await Promise.all(items.slice(i, i + AT_ONCE).map(work));
}
