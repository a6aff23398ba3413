/** The rollback plan: what undoing a run would do, and what it could not. A pure function; nothing is changed. */
import { byteSize } from "../engine/before.ts";
import type { Json } from "../kernel/json.ts";
import { doAtOnce, type Paced } from "../kernel/turns.ts";
import { plural } from "../kernel/words.ts";
import type { Manifest } from "../model/manifest/types.ts";
import type { PayloadDoc, ReadBy, RunDoc, StepDoc } from "../model/run.ts";
import { classify, type Standing, type StateCheck, sizeOf, type UndoCall } from "./classify.ts";
import { Dependents } from "./dependents.ts";
import { inTurn } from "./in-order.ts";
import type { StateNow, States, Surroundings } from "./look.ts";
import type { ReadRequest } from "./ports.ts";
import { groupByResource, type StatefulStep } from "./things.ts";

const PLAN_KINDS = ["compensate", "skip", "unrecoverable", "unresolved", "unmanifested", "defer"] as const;
export type PlanKind = (typeof PLAN_KINDS)[number];

/** A step that would be undone, and how. */
export interface CompensateAction {
  step: number;
  tool: string;
  kind: "compensate";
  compensation_tool: string;
  args: Json;
  idempotency_key: string;
  needs_approval: boolean;
  residue: readonly string[];
  compensation_kind: "inverse" | "compensation";
  /** Whether the undo will be read back. */
  verified: boolean;
  /** What drills say of the undo, in words: `proven <when>`, `never proven` or `failing`. */
  proof?: string;
  /** How the undo failed when it was tried last; absent where it did not. */
  last_error?: string;
  /** The read that comes before the undo, and who made it before the call; absent where the manifest has none. */
  before?: ReadRequest;
  before_by?: ReadBy;
  /** What was there before the call, what is there now, and what would be there after the undo. */
  was?: Json;
  is?: Json;
  would_be?: Json;
  /** Where the run changed the resource several times: the steps, newest first, and the state before the oldest of them. */
  before_run?: { steps: readonly number[]; would_be: Json };
  /** Of what is there now, where it could be read. */
  current_hash?: string;
  /** Whether what is there now is neither what the call left nor what was there before; absent where there was no look. */
  conflict?: boolean;
  /** When the undo stops working; absent where it does not. */
  closes_ms?: number;
}

/** A step that has to wait until those that build on it are undone. */
export interface DeferAction {
  step: number;
  tool: string;
  kind: "defer";
  blocked_by: readonly number[];
}

/** A step with nothing to undo, or no way to. */
export interface PlainAction {
  step: number;
  tool: string;
  kind: Exclude<PlanKind, "compensate" | "defer">;
  /** There was a way back, and its time has passed. */
  closes_ms?: number;
  closed?: true;
}

/** What a rollback would do with one step. */
export type PlanAction = CompensateAction | DeferAction | PlainAction;

/** What a rollback would do. */
export interface RollbackPlan {
  run_id: string;
  /** Newest first, as they would be done. */
  actions: PlanAction[];
  /** Assumes that each compensation succeeds, also one that failed before. */
  fully_reversible: boolean;
}

/**
 * The plan in a few words for people. Where an undo has failed already, the assumption behind `fully_reversible`
 * has been wrong once, and where what is there could not be read, it is a guess; that is said instead.
 */
export function planVerdict(plan: Pick<RollbackPlan, "actions" | "fully_reversible">): {
  ok: boolean;
  words: string;
} {
  const conflicts = plan.actions.filter(hasConflict).length;
  if (conflicts > 0) {
    // Whoever overwrites these is told that it would not be enough.
    const lost = plan.actions.filter(
      ({ kind }) => kind === "unrecoverable" || kind === "unmanifested",
    ).length;
    const beside = lost === 0 ? "" : `, and ${plural(lost, "step")} cannot be undone`;
    const words = `not fully reversible: ${plural(conflicts, "step was", "steps were")} changed since${beside}`;
    return { ok: false, words };
  }
  if (!plan.fully_reversible) return { ok: false, words: "not fully reversible" };
  const failed = plan.actions.filter(hasFailed).length;
  const unread = plan.actions.filter(isUnread).length;
  const conditions = [
    failed === 0
      ? []
      : `${plural(failed, "undo that failed succeeds", "undos that failed succeed")} this time`,
    unread === 0
      ? []
      : `${plural(unread, "step that was not read is", "steps that were not read are")} unchanged`,
  ].flat();
  if (conditions.length === 0) return { ok: true, words: "fully reversible" };
  return { ok: false, words: `reversible only if ${conditions.join(" and ")}` };
}

/** Its undo will look at what is there first, and the plan was made without a look: it may have been changed since. */
export function isUnread(action: PlanAction): boolean {
  return action.kind === "compensate" && action.before !== undefined && action.is === undefined;
}

export function hasFailed(action: PlanAction): action is CompensateAction & { last_error: string } {
  return action.kind === "compensate" && action.last_error !== undefined;
}

export function hasConflict(action: PlanAction): action is CompensateAction & { conflict: true } {
  return action.kind === "compensate" && action.conflict === true;
}

/** Whether a step of this kind is out of the way afterwards, so that what it depends on can go too. */
const CLEARS: Record<PlanKind, boolean> = {
  compensate: true,
  skip: true,
  unrecoverable: false,
  unresolved: false,
  unmanifested: false,
  defer: false,
};

interface RollbackPlanView {
  /** Undos whose time has passed by then are closed. */
  now_ms?: number | undefined;
  /** Shows how large what was there is instead of what it was. */
  mask?: boolean | undefined;
  /** What is there now, where it was read. */
  states?: States | null | undefined;
  /** Whether an undo that is possible will be left all the same; its step then stays, as does what is there. */
  left?: ((run_id: string, action: CompensateAction) => boolean) | undefined;
}

interface PlannedFrom extends Omit<Surroundings, "run" | "steps"> {
  run: Pick<RunDoc, "run_id">;
}

/** `steps` in step order; `manifests` by content hash; `payloads` by step number. */
export function planRollback(...given: Parameters<typeof planningRollback>): RollbackPlan {
  return doAtOnce(planningRollback(...given));
}

/** The same in turns, with a pause after each step. */
export function* planningRollback(
  run: Pick<RunDoc, "run_id">,
  steps: readonly StepDoc[],
  manifests: ReadonlyMap<string, Manifest>,
  payloads: readonly (PayloadDoc | undefined)[],
  view: RollbackPlanView = {},
): Paced<RollbackPlan> {
  const planner = new Planner({ run, manifests, payloads }, view);
  for (let i = steps.length - 1; i >= 0; i--) {
    planner.visit(steps[i]!);
    yield;
  }
  return planner.plan;
}

/** Plans of runs that are rolled back as one: each undo meets what those before it left, whichever run's they were. */
export function planTogether(runs: readonly Surroundings[], view: RollbackPlanView): RollbackPlan[] {
  const planners = new Map(runs.map((run) => [run, new Planner(run, view)]));
  for (const [run, step] of inTurn(runs)) planners.get(run)!.visit(step);
  return [...planners.values()].map(({ plan }) => plan);
}

/** The plan of one run, made step by step from the newest on. */
class Planner {
  readonly plan: RollbackPlan;
  private readonly from: PlannedFrom;
  private readonly view: RollbackPlanView;
  private readonly dependents = new Dependents();

  constructor(from: PlannedFrom, view: RollbackPlanView) {
    this.from = from;
    this.view = view;
    this.plan = { run_id: from.run.run_id, actions: [], fully_reversible: true };
  }

  visit(step: StepDoc): void {
    const { from, view, dependents, plan } = this;
    const manifest = step.manifest_hash === null ? undefined : from.manifests.get(step.manifest_hash);
    const standing = classify(step, manifest, from.payloads[step.step], view.now_ms ?? 0);
    if (standing === null) return;
    const blocked_by = dependents.blockersOf(step);
    const action = actionFor(step, standing, blocked_by, view);
    plan.actions.push(action);
    const left = action.kind === "compensate" && view.left?.(plan.run_id, action) === true;
    if (!CLEARS[action.kind] || hasConflict(action) || left) {
      plan.fully_reversible = false;
      dependents.hold(step, [step.step]);
    } else if (standing.kind === "compensate") view.states?.undone(step, standing.undo);
    // What stays because it needs no undo still passes on what its own dependents hold.
    else dependents.hold(step, blocked_by);
  }
}

function actionFor(
  doc: StepDoc,
  standing: Standing,
  blocked_by: readonly number[],
  view: RollbackPlanView,
): PlanAction {
  const { step, tool } = doc;
  if (standing.kind === "unrecoverable" && standing.closed)
    return { step, tool, kind: standing.kind, closes_ms: doc.closes_ms!, closed: true };
  if (standing.kind !== "compensate") return { step, tool, kind: standing.kind };
  if (blocked_by.length > 0) return { step, tool, kind: "defer", blocked_by };
  return compensateAction(doc, standing.undo, view, view.states?.meet(doc, standing.undo));
}

function compensateAction(
  doc: StepDoc,
  undo: UndoCall,
  view: RollbackPlanView,
  now: StateNow | undefined,
): CompensateAction {
  const { step, tool, status, error } = doc;
  return {
    step,
    tool,
    kind: "compensate",
    compensation_tool: undo.tool,
    args: view.mask && undo.state !== null ? undo.state.masked_args : undo.args,
    idempotency_key: undo.idempotency_key,
    needs_approval: undo.needs_approval,
    residue: undo.residue,
    compensation_kind: undo.kind,
    verified: undo.read_back !== null,
    ...(status === "compensation_failed" ? { last_error: error ?? "no reason given" } : {}),
    ...(doc.closes_ms === undefined ? {} : { closes_ms: doc.closes_ms }),
    ...(undo.state === null ? {} : stateFields(doc, undo.state, view, now)),
  };
}

/** Longer values are shown by their size: a plan is read by people, and a run may have thousands of steps. */
const LONGEST_SHOWN = 65_536;

const shownState = (value: Json, mask: boolean | undefined): Json =>
  mask || byteSize(value) > LONGEST_SHOWN ? sizeOf(value) : value;

/**
 * Adds to the newest conflict of each resource what was there before the run changed it, where it changed it more than
 * once. `stated`: the steps whose undo reads first, oldest first.
 */
export function addStatesBeforeRun(
  { actions }: RollbackPlan,
  stated: readonly StatefulStep[],
  { mask }: Pick<RollbackPlanView, "mask">,
): void {
  const groups = groupByResource(stated);
  for (const action of actions.filter(hasConflict)) {
    const group = groups.get(action.step);
    if (group === undefined) continue;
    const steps = group.flatMap(({ doc }) => (doc.step <= action.step ? [doc.step] : []));
    // The older conflicts of the group are undone with this one.
    for (const step of steps) groups.delete(step);
    if (steps.length > 1)
      action.before_run = { steps: steps.reverse(), would_be: shownState(group[0]!.state.was, mask) };
  }
}

function stateFields(
  { before_by }: StepDoc,
  state: StateCheck,
  { mask }: RollbackPlanView,
  now: StateNow | undefined,
) {
  const shown = (value: Json) => shownState(value, mask);
  return {
    before: state.read,
    ...(before_by === undefined ? {} : { before_by }),
    was: shown(state.was),
    ...(now === undefined ? {} : { is: shown(now.is) }),
    would_be: shown(state.was),
    ...now?.seen,
  };
}
