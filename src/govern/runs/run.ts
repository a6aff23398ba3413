/** Runs and steps: the fields of the API, and internal data stored with them. */
import { valueHash } from "../../kernel/hash.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import type { RefundableCharge } from "../../rules/policy/checks/counters.ts";
import type { TraceKind } from "../../rules/trace/fingerprint-map.ts";

export const RUN_MODES = ["enforce", "observe", "advise"] as const;
export type RunMode = (typeof RUN_MODES)[number];

export const OUTCOME_STATUSES = ["succeeded", "failed", "uncertain"] as const;
export type OutcomeStatus = (typeof OUTCOME_STATUSES)[number];

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

/** Statuses of steps whose effect is not undone, or possibly not. */
export const ACTIVE_STEP_STATUSES: ReadonlySet<StepStatus> = new Set([
  "succeeded",
  "compensating",
  "compensation_failed",
]);
/** Statuses of steps with an unknown outcome. */
export const UNKNOWN_OUTCOME_STATUSES: ReadonlySet<StepStatus> = new Set(["intended", "uncertain"]);

/** Components that read the state before and after a call. The reading of an agent is unverified. */
export const STATE_READERS = ["agent", "gateway", "library"] as const;
export type ReadBy = (typeof STATE_READERS)[number];

/** What an effect check found. `not checked` means that it could not be run. */
export const EFFECT_FINDINGS = ["held", "missing", "not checked"] as const;
export type EffectFinding = (typeof EFFECT_FINDINGS)[number];

export interface SealedScope {
  permissions: string[];
  seal: string;
}

/** Place of a child run in its tree. The run's seal covers it. */
export interface TreePlace {
  parent: string;
  /** Root of the tree, which owns the counters and followed values. */
  counted_run: string;
  /** The root has level 1. */
  level: number;
}

interface SealedFacts {
  run_id: string;
  actor: string;
  mode: RunMode;
  tenant: string | null;
  permissions: readonly string[];
  acting?: readonly string[] | undefined;
  /** Absent for a run without a parent. */
  child_of?: TreePlace | undefined;
}

/** Hash that binds a run's identity to its permissions, so that an edited scope no longer matches its seal. */
export function scopeSeal(facts: SealedFacts): string {
  return valueHash({
    run_id: facts.run_id,
    actor: facts.actor,
    mode: facts.mode,
    tenant: facts.tenant,
    permissions: [...facts.permissions].sort(),
    ...(facts.acting === undefined ? {} : { acting: [...facts.acting] }),
    ...(facts.child_of === undefined ? {} : { child_of: { ...facts.child_of } }),
  });
}

type Sealed = Omit<SealedFacts, "permissions"> & { scope: SealedScope };

const intact = new WeakMap<SealedScope, Omit<Sealed, "scope"> & { seal: string }>();

/**
 * True if the run's scope matches its seal. A scope object from the store is checked once; the result is cached for the
 * same object and facts.
 */
export function isSealed(run: Sealed): boolean {
  const { run_id, actor, acting, mode, tenant, scope, child_of } = run;
  const known = intact.get(scope);
  if (
    known !== undefined &&
    known.seal === scope.seal &&
    known.run_id === run_id &&
    known.actor === actor &&
    known.acting === acting &&
    known.mode === mode &&
    known.tenant === tenant &&
    isSamePlace(known.child_of, child_of)
  )
    return true;
  const { permissions, seal } = scope;
  if (scopeSeal({ run_id, actor, acting, mode, tenant, permissions, child_of }) !== seal) return false;
  intact.set(scope, { run_id, actor, acting, mode, tenant, seal, child_of });
  return true;
}

function isSamePlace(a: TreePlace | undefined, b: TreePlace | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return a.parent === b.parent && a.counted_run === b.counted_run && a.level === b.level;
}

/** Run as stored. Steps are separate rows, so that the cost of a run does not grow with them. */
export interface RunDoc {
  run_id: string;
  /** Id of the principal that opened the run; distinguishes equal names of different kinds and issuers. */
  principal: string;
  actor: string;
  /** Those who act for the actor, outermost first; absent if it acts itself. */
  acting?: readonly string[] | undefined;
  mode: RunMode;
  tenant: string | null;
  environment: string | null;
  reason: string | null;
  scope: SealedScope;
  created_ms: number;
  /** Key for hashes of the run's values. Deleted with the run, after which the values cannot be guessed. */
  salt: string;
  next_step: number;
  next_run_seq: number;
  /** Number of steps in each state that can need attention. */
  open: number;
  uncertain: number;
  compensation_failed: number;
  awaiting: number;
  /** Number of open approval requests, which has a maximum. */
  open_approvals: number;
  /** Decided plans in progress; absent if there are none. */
  plans?: string[] | undefined;
  /** Time of the last call; earlier versions did not store it. */
  called_ms?: number | undefined;
  /** Work that its rollbacks left undone; absent if there is none. */
  undo_left?: UndoLeft | undefined;
  /** Absent for a run without a parent. */
  child_of?: TreePlace | undefined;
  /** Number of child runs that it opened, also deleted ones; absent if there are none. */
  children?: number | undefined;
  /** SHA-256 of the launcher's secret, if the run belongs to a confined command. Absent for every other run. */
  sandbox?: string | undefined;
  /** On the root of a tree: number of open approval requests of its other runs. */
  tree_open_approvals?: number | undefined;
}

/** Entry of a child run in the list of its tree. */
export interface ChildRunDoc {
  run_id: string;
  parent: string;
  root: string;
  opened_ms: number;
}

/** A launcher's evidence that a call comes from its confined command: its own run, and the secret of that run. */
export interface SandboxEvidence {
  run_id: string;
  secret: string;
}

/** The run that owns the counters, flows and followed values of this run: the root of its tree, or itself. */
export const countedRun = ({ run_id, child_of }: Pick<RunDoc, "run_id" | "child_of">): string =>
  child_of?.counted_run ?? run_id;

/** Whether the run shares its counters with another run. */
export const isInTree = ({ child_of, children }: Pick<RunDoc, "child_of" | "children">): boolean =>
  child_of !== undefined || (children ?? 0) > 0;

/** Why the last rollback skipped a step. */
export type SkipReason = "conflict" | "deferred" | "failed" | "unverified";

export interface SkippedStep {
  step: number;
  why: SkipReason;
}

interface UndoLeft {
  /** True if a rollback has begun and not ended. */
  unfinished: boolean;
  /** Steps that the last rollback skipped, newest first. */
  steps: SkippedStep[];
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
  /** Steps that the caller named. Dependencies through `requires` are derived from the positions below. */
  depends_on: number[];
  requires: string[];
  compensation_tool: string | null;
  handle: string | null;
  error: string | null;
  manifest_version: string | null;
  /** Content address of the manifest when the step was accepted. */
  manifest_hash: string | null;
  risk_score: number;
  args_hash: string;
  result_hash: string | null;
  intended_ms: number;
  finished_ms: number | null;
  /** Ledger positions that order this step among others. */
  intended_seq: number;
  succeeded_seq: number | null;
  compensated_seq: number | null;
  /** Store-wide key of the logical call, if the manifest declares one. */
  idempotency: string | null;
  /** Active step with the same logical call, if this step was accepted anyway (observe, advise). */
  repeat_of?: { run_id: string; step: number } | undefined;
  /** Latest approval request for this step's undo. */
  undo_request?: string | undefined;
  /** Newer steps on the same resource that the current undo includes. */
  undo_covers?: readonly number[] | undefined;
  /** True if the step is undone but its declared read-back could not run. */
  unverified?: boolean | undefined;
  /** Plan that the call belongs to. */
  plan?: string | undefined;
  /** Component that read the state before the call, and the hashes of the state before and after it. */
  before_by?: ReadBy | undefined;
  before_hash?: string | undefined;
  after_hash?: string | undefined;
  /** What the effect check found, and who made it; absent if the manifest declares none or the call did not succeed. */
  effect_check?: EffectFinding | undefined;
  effect_check_by?: ReadBy | undefined;
  /** When the undo expires, if the manifest declares it and the step succeeded. */
  closes_ms?: number | undefined;
  /** The client's own id of the call; absent without one. */
  ref?: string | undefined;
  /** Earlier results whose values the arguments carried; absent without such values. */
  fed_by?: readonly StepFeed[] | undefined;
  /** The manifest's sentence on the call, for everybody who can read the run. Never on the ledger. */
  line?: string | undefined;
}

/** A result that fed a call: where the value was found, and its kind. Never the value. */
export interface StepFeed {
  run_id: string;
  step: number;
  path: string;
  kind: TraceKind;
}

/**
 * Copies documents for a unit of work to change. Lists the members, because spreading a document costs ten times as
 * much.
 */
export function copyOfRun(run: RunDoc): RunDoc {
  return {
    run_id: run.run_id,
    principal: run.principal,
    actor: run.actor,
    acting: run.acting,
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
    child_of: run.child_of,
    children: run.children,
    sandbox: run.sandbox,
    tree_open_approvals: run.tree_open_approvals,
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
    effect_check: step.effect_check,
    effect_check_by: step.effect_check_by,
    closes_ms: step.closes_ms,
    ref: step.ref,
    fed_by: step.fed_by,
    line: step.line,
  };
}

/**
 * Values of a call. `args` is stored only until the outcome. Afterwards `refs` has the values that an undo needs, by
 * their path, and nothing else of the call.
 */
export interface PayloadDoc {
  args?: JsonValue | undefined;
  refs: { [path: string]: JsonValue };
  /** State read before the call, for its undo. */
  before?: JsonValue | undefined;
  /** Reported result of a call whose effect is missing, until an operator resolves the step. */
  result?: JsonValue | undefined;
  /**
   * Charges of limits and budgets to refund after a verified undo. Deleted with the undo, so that each is refunded
   * once.
   */
  refunds?: readonly RefundableCharge[] | undefined;
}

/** Number of calls of a tool in a run, and of its active steps. */
export interface RunToolDoc {
  run_id: string;
  tool: string;
  calls: number;
  standing: number;
}

export const RUN_ID_FORM = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
