/**
 * Rollback backend on a remote server, through the routes for remote workers. The server keeps the order, the leases
 * and the records. The fields of its refusals describe the state of the step.
 */
import type { OperationsClient } from "../http/api/operations-client.ts";
import { SvcError } from "../kernel/errors.ts";
import { toCanonicalJson } from "../kernel/json/canonical.ts";
import type { JsonValue } from "../kernel/json/json.ts";
import { beginUndo, completeUndo, getRollbackPlan as planOp } from "../operations/rollback/rollback.ts";
import type {
  PreRetryRead,
  RollbackBackend,
  RollbackSnapshot,
  StepToUndo,
  UndoBeginResult,
  UndoTask,
} from "../rollback/backend/backend.ts";
import type { CompensationTask } from "../rollback/backend/remote-worker.ts";
import type { ReadBackSpec } from "../rollback/plan/classify.ts";
import { conflictOf, conflictOutcome, notChecked } from "../rollback/plan/conflict.ts";
import type { PlanAction, RollbackPlan } from "../rollback/plan/plan.ts";
import type { StepOutcome } from "../rollback/plan/report.ts";
import type { OverwriteDecision } from "../rollback/ports.ts";
import type { UndoEnd } from "../rollback/undo/complete-undo.ts";
import { READ_BACK_LIMITS } from "../rules/manifest/schema.ts";
import { shortenError, toSendable } from "./request-size.ts";
import { retryOnQuota } from "./retry.ts";

interface RemoteRollbackOptions {
  overwrite?: OverwriteDecision | undefined;
  /** Positions of the run's calls, if it is undone together with other runs. */
  places?: ReadonlyMap<number, number> | undefined;
  /** Called with the approval that an undo used, before it is carried out. */
  onApproval?: ((step: number, approval_id: string) => void) | undefined;
}

export class RemoteRollbackBackend implements RollbackBackend {
  readonly run_id: string;
  private readonly client: OperationsClient;
  private readonly options: RemoteRollbackOptions;

  constructor(client: OperationsClient, run_id: string, options: RemoteRollbackOptions = {}) {
    this.client = client;
    this.run_id = run_id;
    this.options = options;
  }

  async plan(): Promise<RollbackSnapshot> {
    const { run_id } = this;
    const { actions } = (await retryOnQuota(() => this.client.perform(planOp, { run_id }))) as RollbackPlan;
    const visits = actions.map((action): StepToUndo => {
      const { step, tool } = action;
      const read = action.kind === "compensate" ? (action.before ?? null) : null;
      const closes_ms = action.kind === "compensate" ? action.closes_ms : undefined;
      const seq = this.options.places?.get(step);
      const place = seq === undefined ? undefined : { intended_seq: seq, succeeded_seq: seq };
      return { step, tool, outcome: outcomeOf(action), fallen: false, read, closes_ms, place };
    });
    return { visits, known_steps: actions.length };
  }

  async begin(visit: StepToUndo, look: RollbackSnapshot, current?: JsonValue): Promise<UndoBeginResult> {
    const { run_id } = this;
    const { step } = visit;
    const { overwrite } = this.options;
    if (current !== undefined && toSendable(current) === undefined)
      return { state: "settled", outcome: notChecked() };
    const over = overwrite?.step === step ? { ...overwrite, overwrite: true } : {};
    try {
      const begun = await retryOnQuota(() =>
        this.client.perform(beginUndo, { run_id, current, ...over, step }),
      );
      const shared_by = [begun.step, ...(begun.covers ?? [])].filter((other) => other !== step);
      if ("status" in begun) return { state: "settled", outcome: { as: "compensated" }, shared_by };
      return {
        state: "begun",
        task: this.taskOf(begun as CompensationTask, visit, look, current),
        shared_by,
      };
    } catch (error) {
      return { state: "settled", outcome: refused(error) };
    }
  }

  async complete(step: number, end: UndoEnd): Promise<StepOutcome> {
    const { run_id } = this;
    const { attempts } = end;
    const result = end.ok
      ? { status: "succeeded" as const, attempts, observed: observedOf(end) }
      : { status: "failed" as const, attempts, error: shortenError(end.error) };
    const done = await retryOnQuota(() => this.client.perform(completeUndo, { run_id, step, ...result }));
    const unread = done.unverified === true || (end.ok && end.read_back?.as === "unverified");
    if (done.status === "compensated") return { as: unread ? "unverified" : "compensated" };
    return { as: "failed", error: errorOf(end), ...conflictOf(end) };
  }

  /** Always false: the server checks each step, and begins none that later steps depend on. */
  async grew(): Promise<boolean> {
    return false;
  }

  clean(_: UndoTask, text: string): string {
    return text.toWellFormed();
  }

  private taskOf(
    { verification, covers: _, approval_id, ...call }: CompensationTask,
    visit: StepToUndo,
    look: RollbackSnapshot,
    current: JsonValue | undefined,
  ): UndoTask {
    if (approval_id !== undefined) this.options.onApproval?.(call.step, approval_id);
    const read_back: ReadBackSpec | null = verification && {
      ...verification,
      retries: READ_BACK_LIMITS.retries.default,
      backoff_ms: READ_BACK_LIMITS.backoff_ms.default,
    };
    if (visit.read === null || current === undefined) return { call, read_back, recheck: null };
    let seen = current;
    const judge: PreRetryRead["judge"] = async (now, failed) => {
      if (toCanonicalJson(now) === toCanonicalJson(seen)) return { state: "go" };
      // Only the server knows which changes matter, so the undo is reported as failed and begun again.
      await this.complete(call.step, { ok: false, ...failed });
      const begun = await this.begin(visit, look, now);
      seen = now;
      if (begun.state === "settled") return begun;
      return { state: "go" };
    };
    return { call, read_back, recheck: { read: visit.read, judge } };
  }
}

function outcomeOf(action: PlanAction): StepOutcome | null {
  if (action.kind === "compensate") return null;
  if (action.kind === "defer") return { as: "deferred", blocked_by: action.blocked_by };
  return { as: action.kind === "skip" ? "skipped" : action.kind };
}

/** Translates a refusal into the outcome of the step. Any other error ends the rollback. */
function refused(error: unknown): StepOutcome {
  if (!(error instanceof SvcError) || error.code !== "conflict" || error.extra === undefined) throw error;
  const { approval_id, blocked_by, step_status, conflict, current_hash, read_first, closed, denied } =
    error.extra;
  if (closed === true) return { as: "unrecoverable" };
  if (denied === true) return { as: "failed", error: error.message };
  if (read_first !== undefined) return notChecked();
  if (conflict === true) return conflictOutcome({ error: error.message, current_hash: String(current_hash) });
  if (approval_id !== undefined) return { as: "awaiting_approval" };
  if (Array.isArray(blocked_by)) return { as: "deferred", blocked_by };
  if (step_status === "compensated") return { as: "skipped" };
  throw error;
}

/**
 * The observed state for the server. A failed read-back still ran, and counts as having found nothing. A value that
 * cannot be sent leaves the undo unverified.
 */
function observedOf({ read_back }: Extract<UndoEnd, { ok: true }>): JsonValue | undefined {
  if (read_back === null || read_back.as === "unverified") return undefined;
  return toSendable(read_back.observed ?? null);
}

function errorOf(end: UndoEnd): string {
  if (!end.ok) return end.error;
  return end.read_back?.as === "verification_failed" ? end.read_back.error : "the server did not confirm it";
}
