/** Runs and steps: what the interface shows, and what is kept beside it as working data. */
import { valueHash } from "../kernel/hash.ts";
import type { Json } from "../kernel/json.ts";
import type { Refundable } from "./policy/counters.ts";

export const MODES = ["enforce", "observe", "advise"] as const;
export type Mode = (typeof MODES)[number];

export const OUTCOMES = ["succeeded", "failed", "uncertain"] as const;
export type OutcomeStatus = (typeof OUTCOMES)[number];

export const STEP_STATUSES = [
  "intended",
  "succeeded",
  "failed",
  "uncertain",
  "compensating",
  "compensated",
  "compensation_failed",
] as const;
export type StepStatus = (typeof STEP_STATUSES)[number];

/** Steps that have, or may have, an effect in the world that was not taken back. */
export const STANDING: ReadonlySet<StepStatus> = new Set([
  "succeeded",
  "compensating",
  "compensation_failed",
]);
/** Steps whose outcome is not known. */
export const UNKNOWN: ReadonlySet<StepStatus> = new Set(["intended", "uncertain"]);

/** Who reads what is there before a call and after it; an agent's reading is its word. */
export const READERS = ["agent", "gateway", "library"] as const;
export type ReadBy = (typeof READERS)[number];

export interface SealedScope {
  permissions: string[];
  seal: string;
}

interface SealedFacts {
  run_id: string;
  actor: string;
  mode: Mode;
  tenant: string | null;
  permissions: readonly string[];
}

/** Binds a run's identity to its permissions: an edit of the stored scope no longer matches its seal. */
export function scopeSeal(facts: SealedFacts): string {
  return valueHash({
    run_id: facts.run_id,
    actor: facts.actor,
    mode: facts.mode,
    tenant: facts.tenant,
    permissions: [...facts.permissions].sort(),
  });
}

type Sealed = Omit<SealedFacts, "permissions"> & { scope: SealedScope };

const intact = new WeakMap<SealedScope, Omit<Sealed, "scope"> & { seal: string }>();

/**
 * Whether the run's scope is as it was sealed. A scope read from the store is checked once: as long as the very
 * same object is handed around, with the same facts beside it, it is known to be intact.
 */
export function isSealed(run: Sealed): boolean {
  const { run_id, actor, mode, tenant, scope } = run;
  const known = intact.get(scope);
  if (
    known !== undefined &&
    known.seal === scope.seal &&
    known.run_id === run_id &&
    known.actor === actor &&
    known.mode === mode &&
    known.tenant === tenant
  )
    return true;
  if (scopeSeal({ run_id, actor, mode, tenant, permissions: scope.permissions }) !== scope.seal) return false;
  intact.set(scope, { run_id, actor, mode, tenant, seal: scope.seal });
  return true;
}

/** The run as stored. Steps are rows of their own, so that a run's cost does not grow with them. */
export interface RunDoc {
  run_id: string;
  /** Who opened it, with kind and issuer, so that equal names of different kinds stay apart. */
  principal: string;
  actor: string;
  mode: Mode;
  tenant: string | null;
  environment: string | null;
  reason: string | null;
  scope: SealedScope;
  created_ms: number;
  /** Keys the hashes of this run's values; gone with the run, and then they cannot be guessed. */
  salt: string;
  next_step: number;
  next_run_seq: number;
  /** How many steps are in each state that a person may have to look at. */
  open: number;
  uncertain: number;
  compensation_failed: number;
  awaiting: number;
  /** How many of the run's approval requests are open, against the cap. */
  open_approvals: number;
  /** Decided plans whose calls are being made; absent where there is none. */
  plans?: string[] | undefined;
  /** When it was last called on; earlier versions did not write it. */
  called_ms?: number | undefined;
  /** What its rollbacks have not done; absent where that is nothing. */
  undo_left?: UndoLeft | undefined;
}

/** Why the last rollback left a step alone. */
export type LeftAlone = "conflict" | "deferred" | "failed" | "unverified";

export interface LeftStep {
  step: number;
  why: LeftAlone;
}

interface UndoLeft {
  /** A rollback was begun and has not ended. */
  unfinished: boolean;
  /** Steps that the last rollback left alone, newest first. */
  steps: LeftStep[];
}

export const RUN_STATES = ["needs attention", "open", "settled"] as const;
export type RunState = (typeof RUN_STATES)[number];

export interface StepDoc {
  run_id: string;
  step: number;
  tool: string;
  reason: string;
  effect: string | null;
  status: StepStatus;
  /** Steps the caller named. Those that follow from `requires` are derived from the positions below. */
  depends_on: number[];
  requires: string[];
  compensation_tool: string | null;
  handle: string | null;
  error: string | null;
  manifest_version: string | null;
  /** Content address of the manifest as it was when the step was accepted. */
  manifest_hash: string | null;
  risk_score: number;
  args_hash: string;
  result_hash: string | null;
  intended_ms: number;
  finished_ms: number | null;
  /** Ledger positions that order this step against others. */
  intended_seq: number;
  succeeded_seq: number | null;
  compensated_seq: number | null;
  /** The store-wide key of the logical call, where the manifest declares one. */
  idempotency: string | null;
  /** The step that stood for the same logical call when this one was accepted all the same (observe, advise). */
  repeat_of?: { run_id: string; step: number } | undefined;
  /** The latest request for approval of this step's undo. */
  undo_request?: string | undefined;
  /** Newer steps on the same resource that the undo under way undoes with this one. */
  undo_covers?: readonly number[] | undefined;
  /** The step is undone, and its declared read-back could not be run. */
  unverified?: boolean | undefined;
  /** The plan that it is a call of. */
  plan?: string | undefined;
  /** Who read what was there before the call, and the hashes of what was there before and after it. */
  before_by?: ReadBy | undefined;
  before_hash?: string | undefined;
  after_hash?: string | undefined;
  /** When the undo stops working, where the manifest says so and the step succeeded. */
  closes_ms?: number | undefined;
}

/** Copies that a unit of work may change. Member by member: a spread of a document costs ten times as much. */
export function copyOfRun(run: RunDoc): RunDoc {
  return {
    run_id: run.run_id,
    principal: run.principal,
    actor: run.actor,
    mode: run.mode,
    tenant: run.tenant,
    environment: run.environment,
    reason: run.reason,
    scope: run.scope,
    created_ms: run.created_ms,
    salt: run.salt,
    next_step: run.next_step,
    next_run_seq: run.next_run_seq,
    open: run.open,
    uncertain: run.uncertain,
    compensation_failed: run.compensation_failed,
    awaiting: run.awaiting,
    open_approvals: run.open_approvals,
    plans: run.plans,
    called_ms: run.called_ms,
    undo_left: run.undo_left,
  };
}

export function copyOfStep(step: StepDoc): StepDoc {
  return {
    run_id: step.run_id,
    step: step.step,
    tool: step.tool,
    reason: step.reason,
    effect: step.effect,
    status: step.status,
    depends_on: step.depends_on,
    requires: step.requires,
    compensation_tool: step.compensation_tool,
    handle: step.handle,
    error: step.error,
    manifest_version: step.manifest_version,
    manifest_hash: step.manifest_hash,
    risk_score: step.risk_score,
    args_hash: step.args_hash,
    result_hash: step.result_hash,
    intended_ms: step.intended_ms,
    finished_ms: step.finished_ms,
    intended_seq: step.intended_seq,
    succeeded_seq: step.succeeded_seq,
    compensated_seq: step.compensated_seq,
    idempotency: step.idempotency,
    repeat_of: step.repeat_of,
    undo_request: step.undo_request,
    undo_covers: step.undo_covers,
    unverified: step.unverified,
    plan: step.plan,
    before_by: step.before_by,
    before_hash: step.before_hash,
    after_hash: step.after_hash,
    closes_ms: step.closes_ms,
  };
}

/**
 * The values of a call. `args` stays only while the outcome is open; afterwards `refs` keeps the values
 * that an undo needs, by the path that names them, and nothing else of the call.
 */
export interface PayloadDoc {
  args?: Json | undefined;
  refs: { [path: string]: Json };
  /** What was read before the call, for its undo. */
  before?: Json | undefined;
  /** What limits and budgets give back once the undo is proven; gone with the undo, so that it is given once. */
  refunds?: readonly Refundable[] | undefined;
}

/** How often a tool was called in a run, and how many of those steps stand. */
export interface RunToolDoc {
  run_id: string;
  tool: string;
  calls: number;
  standing: number;
}

export const RUN_ID_FORM = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
