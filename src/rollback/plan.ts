/** The rollback plan: what undoing a run would do, and what it could not. A pure function; nothing is changed. */
import { byteSize } from "../engine/before.ts";
import type { Json } from "../kernel/json.ts";
import { plural } from "../kernel/plural.ts";
import type { Manifest } from "../model/manifest/types.ts";
import type { PayloadDoc, ReadBy, RunDoc, StepDoc } from "../model/run.ts";
import { classify, type Standing, type StateCheck, sizeOf, type Undo } from "./classify.ts";
import { Dependents } from "./dependents.ts";
import type { ReadRequest } from "./ports.ts";

export const PLAN_KINDS = [
  "compensate",
  "skip",
  "unrecoverable",
  "unresolved",
  "unmanifested",
  "defer",
] as const;
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
  /** Of what is there now, where it could be read. */
  current_hash?: string;
  /** Whether what is there now is neither what the call left nor what was there before; absent where nobody looked. */
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
 * has been wrong once, and that is said instead.
 */
export function planVerdict(plan: Pick<RollbackPlan, "actions" | "fully_reversible">): {
  ok: boolean;
  words: string;
} {
  const conflicts = plan.actions.filter(hasConflict).length;
  if (conflicts > 0)
    return {
      ok: false,
      words: `not fully reversible: ${plural(conflicts, "step was", "steps were")} changed since`,
    };
  if (!plan.fully_reversible) return { ok: false, words: "not fully reversible" };
  const failed = plan.actions.filter(hasFailed).length;
  if (failed === 0) return { ok: true, words: "fully reversible" };
  const which = plural(failed, "undo that failed succeeds", "undos that failed succeed");
  return { ok: false, words: `reversible only if ${which} this time` };
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

export interface PlanView {
  /** Undos whose time has passed by then are closed. */
  now_ms?: number | undefined;
  /** Shows how large what was there is instead of what it was. */
  mask?: boolean | undefined;
  /** What is there now, by step; only steps whose `before` was read. */
  now?: ReadonlyMap<number, StateNow> | undefined;
}

/** What the read of a step's `before` shows now; `seen` is absent where newer undos will change it first. */
export interface StateNow {
  is: Json;
  seen?: { current_hash: string; conflict: boolean };
}

/** `steps` in step order; `manifests` by content hash; `payloads` by step number. */
export function planRollback(
  run: Pick<RunDoc, "run_id">,
  steps: readonly StepDoc[],
  manifests: ReadonlyMap<string, Manifest>,
  payloads: readonly (PayloadDoc | undefined)[],
  view: PlanView = {},
): RollbackPlan {
  const dependents = new Dependents();
  const actions: PlanAction[] = [];
  let fully_reversible = true;
  for (let i = steps.length - 1; i >= 0; i--) {
    const step = steps[i]!;
    const manifest = step.manifest_hash === null ? undefined : manifests.get(step.manifest_hash);
    const standing = classify(step, manifest, payloads[step.step], view.now_ms ?? 0);
    if (standing === null) continue;
    const blocked_by = dependents.blockersOf(step);
    const action = actionFor(step, standing, blocked_by, view);
    actions.push(action);
    // What stays because it needs no undo still passes on what its own dependents hold.
    if (!CLEARS[action.kind] || hasConflict(action)) {
      fully_reversible = false;
      dependents.hold(step, [step.step]);
    } else if (action.kind === "skip") dependents.hold(step, blocked_by);
  }
  return { run_id: run.run_id, actions, fully_reversible };
}

function actionFor(
  doc: StepDoc,
  standing: Standing,
  blocked_by: readonly number[],
  view: PlanView,
): PlanAction {
  const { step, tool } = doc;
  if (standing.kind === "unrecoverable" && standing.closed)
    return { step, tool, kind: standing.kind, closes_ms: doc.closes_ms!, closed: true };
  if (standing.kind !== "compensate") return { step, tool, kind: standing.kind };
  if (blocked_by.length > 0) return { step, tool, kind: "defer", blocked_by };
  return compensateAction(doc, standing.undo, view);
}

function compensateAction(doc: StepDoc, undo: Undo, view: PlanView): CompensateAction {
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
    ...(undo.state === null ? {} : stateFields(doc, undo.state, view)),
  };
}

/** Longer values are shown by their size: a plan is read by people, and a run may have thousands of steps. */
const LONGEST_SHOWN = 65_536;

function stateFields({ step, before_by }: StepDoc, state: StateCheck, { mask, now }: PlanView) {
  const shown = (value: Json) => (mask || byteSize(value) > LONGEST_SHOWN ? sizeOf(value) : value);
  const seen = now?.get(step);
  return {
    before: state.read,
    ...(before_by === undefined ? {} : { before_by }),
    was: shown(state.was),
    ...(seen === undefined ? {} : { is: shown(seen.is) }),
    would_be: shown(state.was),
    ...seen?.seen,
  };
}
