/**
 * Builds the rollback plan: a preview of the steps that undoing a run would and would not undo. Pure; changes nothing.
 */
import { byteSize } from "../../govern/decide/before-state.ts";
import type { PayloadDoc, ReadBy, RunDoc, StepDoc } from "../../govern/runs/run.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import { type PausableWork, runAtOnce } from "../../kernel/pausable-work.ts";
import { formatCountOf } from "../../kernel/text/phrases.ts";
import type { ToolManifest } from "../../rules/manifest/types.ts";
import type { ReadRequest } from "../ports.ts";
import { classifyUndo, type StateCheck, sizeOf, type UndoCall, type UndoClassification } from "./classify.ts";
import type { CurrentState, ResourceStates, RunUndoContext } from "./current-state.ts";
import { DependentSteps } from "./dependents.ts";
import { undoOrder } from "./multi-run.ts";
import { groupByResource, type StatefulStep } from "./steps-by-resource.ts";

const PLAN_KINDS = ["compensate", "skip", "unrecoverable", "unresolved", "unmanifested", "defer"] as const;
export type PlanKind = (typeof PLAN_KINDS)[number];

/** The call that an action is about. */
interface PlannedCall {
  step: number;
  tool: string;
  /** The manifest's sentence on the call, if it has one. */
  line?: string;
}

/** A step that would be undone, and how. */
export interface CompensateAction extends PlannedCall {
  kind: "compensate";
  compensation_tool: string;
  args: JsonValue;
  idempotency_key: string;
  needs_approval: boolean;
  residue: readonly string[];
  compensation_kind: "inverse" | "compensation";
  /** Whether a read-back will verify the undo. */
  verified: boolean;
  /** Drill result for the undo, as text: `proven <when>`, `never proven` or `failing`. */
  proof?: string;
  /** Error of the last failed attempt, if any. */
  last_error?: string;
  /** The read before the undo, and who made it before the call. Absent if the manifest declares none. */
  before?: ReadRequest;
  before_by?: ReadBy;
  /** State before the call, current state, and expected state after the undo. */
  was?: JsonValue;
  is?: JsonValue;
  would_be?: JsonValue;
  /**
   * If the run changed the resource several times: those steps, newest first, and the state before the oldest of them.
   */
  before_run?: { steps: readonly number[]; would_be: JsonValue };
  /** Hash of the current state, if it could be read. */
  current_hash?: string;
  /**
   * True if the current state is neither the call's result nor the state before it. Absent if the state was not read.
   */
  conflict?: boolean;
  /** The undo restores each part that is as the call left it, even with a conflict. */
  parts?: true;
  /** Time at which the undo expires, if it does. */
  closes_ms?: number;
  /** Ledger position at which the call took effect. Present if the plan covers several runs; the highest goes first. */
  seq?: number;
}

/** A step that waits until the steps that depend on it are undone. */
export interface DeferAction extends PlannedCall {
  kind: "defer";
  blocked_by: readonly number[];
}

/** A step that needs no undo or has none. */
export interface PlainAction extends PlannedCall {
  kind: Exclude<PlanKind, "compensate" | "defer">;
  /** Set if the step had an undo that has expired. */
  closes_ms?: number;
  closed?: true;
}

/** Planned handling of one step. */
export type PlanAction = CompensateAction | DeferAction | PlainAction;

/** Preview of a rollback. */
export interface RollbackPlan {
  run_id: string;
  /** Newest first, in the order of execution. */
  actions: PlanAction[];
  /** Assumes that each compensation succeeds, even one that failed before. */
  fully_reversible: boolean;
}

/**
 * Summarizes the plan in a few words. `fully_reversible` assumes that every undo succeeds. If an undo has failed
 * before, or a state could not be read, the summary names that condition instead.
 */
export function planVerdict(plan: Pick<RollbackPlan, "actions" | "fully_reversible">): {
  ok: boolean;
  words: string;
} {
  const conflicts = plan.actions.filter(hasConflict).length;
  if (conflicts > 0) {
    // Add that overwriting these changes would still leave other steps.
    const lost = plan.actions.filter(
      ({ kind }) => kind === "unrecoverable" || kind === "unmanifested",
    ).length;
    const lostSteps = lost === 0 ? "" : `, and ${formatCountOf(lost, "step")} cannot be undone`;
    const words = `not fully reversible: ${formatCountOf(conflicts, "step was", "steps were")} changed since${lostSteps}`;
    return { ok: false, words };
  }
  if (!plan.fully_reversible) return { ok: false, words: "not fully reversible" };
  const failed = plan.actions.filter(hasFailed).length;
  const unread = plan.actions.filter(isUnread).length;
  const conditions = [
    failed === 0
      ? []
      : `${formatCountOf(failed, "undo that failed succeeds", "undos that failed succeed")} this time`,
    unread === 0
      ? []
      : `${formatCountOf(unread, "step that was not read is", "steps that were not read are")} unchanged`,
  ].flat();
  if (conditions.length === 0) return { ok: true, words: "fully reversible" };
  return { ok: false, words: `reversible only if ${conditions.join(" and ")}` };
}

/** Whether the undo will check the current state but the plan did not read it. The resource may have changed since. */
export function isUnread(action: PlanAction): boolean {
  return action.kind === "compensate" && action.before !== undefined && action.is === undefined;
}

export function hasFailed(action: PlanAction): action is CompensateAction & { last_error: string } {
  return action.kind === "compensate" && action.last_error !== undefined;
}

export function hasConflict(action: PlanAction): action is CompensateAction & { conflict: true } {
  return action.kind === "compensate" && action.conflict === true;
}

/** Whether a step of this kind no longer blocks the steps it depends on. */
const CLEARS: Record<PlanKind, boolean> = {
  compensate: true,
  skip: true,
  unrecoverable: false,
  unresolved: false,
  unmanifested: false,
  defer: false,
};

interface RollbackPlanView {
  /** Undos whose deadline is before this time are expired. */
  now_ms?: number | undefined;
  /** Shows the size of earlier values instead of the values. */
  mask?: boolean | undefined;
  /** Current states, if they were read. */
  states?: ResourceStates | null | undefined;
  /** Whether a possible undo will be left anyway. Its step then stays active, and its resource unchanged. */
  left?: ((run_id: string, action: CompensateAction) => boolean) | undefined;
}

interface PlannedFrom extends Omit<RunUndoContext, "run" | "steps"> {
  run: Pick<RunDoc, "run_id">;
}

/** `steps` in step order; `manifests` by content hash; `payloads` by step number. */
export function planRollback(...given: Parameters<typeof planRollbackPaced>): RollbackPlan {
  return runAtOnce(planRollbackPaced(...given));
}

/** Like `planRollback`, with a pause after each step. */
export function* planRollbackPaced(
  run: Pick<RunDoc, "run_id">,
  steps: readonly StepDoc[],
  manifests: ReadonlyMap<string, ToolManifest>,
  payloads: readonly (PayloadDoc | undefined)[],
  view: RollbackPlanView = {},
): PausableWork<RollbackPlan> {
  const planner = new Planner({ run, manifests, payloads }, view);
  for (let i = steps.length - 1; i >= 0; i--) {
    planner.visit(steps[i]!);
    yield;
  }
  return planner.plan;
}

/** Plans runs that are rolled back as one: each undo finds the state left by the undos before it, across runs. */
export function planTogether(runs: readonly RunUndoContext[], view: RollbackPlanView): RollbackPlan[] {
  const planners = new Map(runs.map((run) => [run, new Planner(run, view)]));
  for (const [run, step] of undoOrder(runs)) planners.get(run)!.visit(step);
  return [...planners.values()].map(({ plan }) => plan);
}

/** Builds the plan of one run step by step, newest first. */
class Planner {
  readonly plan: RollbackPlan;
  private readonly from: PlannedFrom;
  private readonly view: RollbackPlanView;
  private readonly dependents = new DependentSteps();

  constructor(from: PlannedFrom, view: RollbackPlanView) {
    this.from = from;
    this.view = view;
    this.plan = { run_id: from.run.run_id, actions: [], fully_reversible: true };
  }

  visit(step: StepDoc): void {
    const { from, view, dependents, plan } = this;
    const manifest = step.manifest_hash === null ? undefined : from.manifests.get(step.manifest_hash);
    const classified = classifyUndo(step, manifest, from.payloads[step.step], view.now_ms ?? 0);
    if (classified === null) return;
    const blocked_by = dependents.blockersOf(step);
    const action = actionFor(step, classified, blocked_by, view);
    plan.actions.push(action);
    const left = action.kind === "compensate" && view.left?.(plan.run_id, action) === true;
    if (!CLEARS[action.kind] || hasConflict(action) || left) {
      plan.fully_reversible = false;
      dependents.hold(step, [step.step]);
    } else if (classified.kind === "compensate") view.states?.undone(step, classified.undo);
    // A step that needs no undo stays, and passes its own blockers on.
    else dependents.hold(step, blocked_by);
  }
}

function actionFor(
  doc: StepDoc,
  classified: UndoClassification,
  blocked_by: readonly number[],
  view: RollbackPlanView,
): PlanAction {
  const call = plannedCall(doc);
  if (classified.kind === "unrecoverable" && classified.closed)
    return { ...call, kind: classified.kind, closes_ms: doc.closes_ms!, closed: true };
  if (classified.kind !== "compensate") return { ...call, kind: classified.kind };
  if (blocked_by.length > 0) return { ...call, kind: "defer", blocked_by };
  return compensateAction(doc, classified.undo, view, view.states?.meet(doc, classified.undo));
}

function plannedCall({ step, tool, line }: StepDoc): PlannedCall {
  return { step, tool, ...(line === undefined ? {} : { line }) };
}

function compensateAction(
  doc: StepDoc,
  undo: UndoCall,
  view: RollbackPlanView,
  now: CurrentState | undefined,
): CompensateAction {
  const { status, error } = doc;
  return {
    ...plannedCall(doc),
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

/** Longer values are shown by their size: people read the plan, and a run may have thousands of steps. */
const LONGEST_SHOWN = 65_536;

const shownState = (value: JsonValue, mask: boolean | undefined): JsonValue =>
  mask || byteSize(value) > LONGEST_SHOWN ? sizeOf(value) : value;

/**
 * Adds the state from before the run to the newest conflict of each resource that the run changed more than once.
 * `stated`: steps whose undo reads the state first, oldest first.
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
    // The group's older conflicts are undone with this one.
    for (const step of steps) groups.delete(step);
    if (steps.length > 1)
      action.before_run = { steps: steps.reverse(), would_be: shownState(group[0]!.state.was, mask) };
  }
}

function stateFields(
  { before_by }: StepDoc,
  state: StateCheck,
  { mask }: RollbackPlanView,
  now: CurrentState | undefined,
) {
  const shown = (value: JsonValue) => shownState(value, mask);
  return {
    before: state.read,
    ...(before_by === undefined ? {} : { before_by }),
    was: shown(state.was),
    ...(now === undefined ? {} : { is: shown(now.is) }),
    would_be: shown(state.was),
    ...(state.declared.parts ? { parts: true as const } : {}),
    ...now?.seen,
  };
}
