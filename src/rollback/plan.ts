/** The rollback plan: what undoing a run would do, and what it could not. A pure function; nothing is changed. */
import type { Json } from "../kernel/json.ts";
import { plural } from "../kernel/plural.ts";
import type { Manifest } from "../model/manifest/types.ts";
import type { PayloadDoc, RunDoc, StepDoc } from "../model/run.ts";
import { classify, type Standing, type Undo } from "./classify.ts";
import { Dependents } from "./dependents.ts";

export const PLAN_KINDS = [
  "compensate",
  "skip",
  "unrecoverable",
  "unresolved",
  "unmanifested",
  "defer",
] as const;
export type PlanKind = (typeof PLAN_KINDS)[number];

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
}

export interface DeferAction {
  step: number;
  tool: string;
  kind: "defer";
  blocked_by: readonly number[];
}

export interface PlainAction {
  step: number;
  tool: string;
  kind: Exclude<PlanKind, "compensate" | "defer">;
}

export type PlanAction = CompensateAction | DeferAction | PlainAction;

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
  if (!plan.fully_reversible) return { ok: false, words: "not fully reversible" };
  const failed = plan.actions.filter(hasFailed).length;
  if (failed === 0) return { ok: true, words: "fully reversible" };
  const which = plural(failed, "undo that failed succeeds", "undos that failed succeed");
  return { ok: false, words: `reversible only if ${which} this time` };
}

export function hasFailed(action: PlanAction): action is CompensateAction & { last_error: string } {
  return action.kind === "compensate" && action.last_error !== undefined;
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

/** `steps` in step order; `manifests` by content hash; `payloads` by step number. */
export function planRollback(
  run: Pick<RunDoc, "run_id">,
  steps: readonly StepDoc[],
  manifests: ReadonlyMap<string, Manifest>,
  payloads: readonly (PayloadDoc | undefined)[],
): RollbackPlan {
  const dependents = new Dependents();
  const actions: PlanAction[] = [];
  let fully_reversible = true;
  for (let i = steps.length - 1; i >= 0; i--) {
    const step = steps[i]!;
    const manifest = step.manifest_hash === null ? undefined : manifests.get(step.manifest_hash);
    const standing = classify(step, manifest, payloads[step.step]);
    if (standing === null) continue;
    const blocked_by = dependents.blockersOf(step);
    const action = actionFor(step, standing, blocked_by);
    actions.push(action);
    // What stays because it needs no undo still passes on what its own dependents hold.
    if (!CLEARS[action.kind]) {
      fully_reversible = false;
      dependents.hold(step, [step.step]);
    } else if (action.kind === "skip") dependents.hold(step, blocked_by);
  }
  return { run_id: run.run_id, actions, fully_reversible };
}

function actionFor(doc: StepDoc, standing: Standing, blocked_by: readonly number[]): PlanAction {
  const { step, tool } = doc;
  if (standing.kind !== "compensate") return { step, tool, kind: standing.kind };
  if (blocked_by.length > 0) return { step, tool, kind: "defer", blocked_by };
  return compensateAction(doc, standing.undo);
}

function compensateAction({ step, tool, status, error }: StepDoc, undo: Undo): CompensateAction {
  return {
    step,
    tool,
    kind: "compensate",
    compensation_tool: undo.tool,
    args: undo.args,
    idempotency_key: undo.idempotency_key,
    needs_approval: undo.needs_approval,
    residue: undo.residue,
    compensation_kind: undo.kind,
    verified: undo.read_back !== null,
    ...(status === "compensation_failed" ? { last_error: error ?? "no reason given" } : {}),
  };
}
