/** Rollback backend on this process's store, under the run's lease. */
import type { EngineCore } from "../../govern/core.ts";
import type { StoreTx } from "../../govern/port/store.ts";
import type { StepDoc } from "../../govern/runs/run.ts";
import { forbiddenError, SvcError } from "../../kernel/errors.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import type { WorkLease } from "../lease.ts";
import { classifyUndo, type UndoCall, type UndoClassification } from "../plan/classify.ts";
import { compareCurrentState, conflictOf, conflictOutcome, notChecked } from "../plan/conflict.ts";
import { loadForRollback, loadGroup, loadRunDoc, type UndoGroup } from "../plan/load-run.ts";
import type { StepOutcome } from "../plan/report.ts";
import { StepsByResource, type StepWithRead } from "../plan/steps-by-resource.ts";
import type { OverwriteDecision } from "../ports.ts";
import { beginUnit } from "../undo/begin-undo.ts";
import { cleanError, completeUnit, type UndoEnd } from "../undo/complete-undo.ts";
import type {
  PreRetryRead,
  RollbackBackend,
  RollbackSnapshot,
  StepToUndo,
  UndoBeginResult,
  UndoTask,
} from "./backend.ts";

export interface LocalRollbackOptions {
  /** Name recorded on the ledger for this rollback. */
  actor: string;
  /** The caller, when its only authority is that it opened the run. Its undos are recorded as self-reported. */
  principal?: string | undefined;
  approve_compensations?: boolean | undefined;
  overwrite?: OverwriteDecision | undefined;
  /** Steps undone from this ledger position on count as this rollback's own work. */
  since_seq?: number | undefined;
  /** Whether the caller is still allowed to roll back. Checked before each step begins. */
  authorised?: (() => boolean | Promise<boolean>) | undefined;
  /** Steps before this one are left unchanged. */
  down_to?: number | undefined;
  /** The only steps to undo. Default: all. */
  only?: ReadonlySet<number> | undefined;
  /** True if the reader belongs to the service, its gateway or its operator. Its confirmation refunds limits. */
  own_reader?: boolean | undefined;
  /** Parts that every undo leaves alone, such as files. */
  skip?: readonly string[] | undefined;
  /** Joins the transaction in which a step's undo begins. */
  onBegin?: ((tx: StoreTx, step: number) => void) | undefined;
}

export class LocalRollbackBackend implements RollbackBackend {
  private readonly core: EngineCore;
  readonly run_id: string;
  private readonly lease: WorkLease;
  private readonly options: LocalRollbackOptions;
  private things = new StepsByResource([]);

  constructor(core: EngineCore, run_id: string, lease: WorkLease, options: LocalRollbackOptions) {
    this.core = core;
    this.run_id = run_id;
    this.lease = lease;
    this.options = options;
  }

  async plan(): Promise<RollbackSnapshot> {
    const { steps, manifests, payloads } = await loadForRollback(this.core.store, this.run_id);
    const now = this.core.env.now();
    const stated: StepWithRead[] = [];
    const visits = steps.slice(this.options.down_to ?? 0).map((doc): StepToUndo => {
      const manifest = doc.manifest_hash === null ? undefined : manifests.get(doc.manifest_hash);
      const classified = classifyUndo(doc, manifest, payloads[doc.step], now);
      const { step, tool } = doc;
      const outcome = classified === null ? this.fallen(doc) : outcomeOf(classified);
      const state = classified?.kind === "compensate" ? classified.undo.state : null;
      if (state !== null) stated.push({ doc, state });
      return {
        step,
        tool,
        outcome,
        fallen: classified === null,
        ...(this.options.only?.has(step) === false ? { kept: true as const } : {}),
        read: state?.read ?? null,
        closes_ms: doc.closes_ms,
        doc,
      };
    });
    this.things = new StepsByResource(stated);
    return { visits: visits.reverse(), known_steps: steps.length };
  }

  async grew({ known_steps }: RollbackSnapshot): Promise<boolean> {
    if (this.options.only !== undefined) return false;
    return (await loadRunDoc(this.core.store, this.run_id)).next_step > known_steps;
  }

  async begin(
    visit: StepToUndo,
    { known_steps }: RollbackSnapshot,
    current?: JsonValue,
  ): Promise<UndoBeginResult> {
    const { core, options } = this;
    const overwrite = options.overwrite?.step === visit.step ? options.overwrite : undefined;
    const group = await this.groupOf(visit, overwrite);
    const [{ step, tool }, ...newer] = group.steps;
    const covers = newer.map((covered) => covered.step);
    const shared_by = [step, ...covers].filter((other) => other !== visit.step);
    if ((await options.authorised?.()) === false)
      throw forbiddenError(
        `${options.actor} can no longer roll back; the remaining steps are not undone, and another operator can continue`,
        "authority_lost",
      );
    const input = {
      run_id: this.run_id,
      step,
      actor: options.actor,
      principal: options.principal,
      approve: options.approve_compensations ?? false,
      fresh_approval_id: `apr_${core.env.uuid()}`,
      known_steps,
      blocked_by: group.blocked_by,
      overlaps: this.overlapsOf(group.steps),
      hints: group.steps[0],
      current,
      overwrite,
      covers: covers.length === 0 ? undefined : covers,
    };
    const also = options.onBegin && ((tx: StoreTx) => options.onBegin?.(tx, step));
    const begun = await core.store
      .transact(beginUnit(core, this.lease, input, also))
      .catch((error: unknown): { state: "closed"; records: [] } => {
        if (error instanceof SvcError && error.extra?.closed === true)
          return { state: "closed", records: [] };
        throw error;
      });
    if (begun.records.length > 0) core.listeners.recorded(begun.records);
    if (begun.state === "stale") return { state: "stale" };
    // This undo expired while newer steps were undone; older steps can still be undone.
    if (begun.state === "closed") return { state: "settled", outcome: { as: "unrecoverable" } };
    if (begun.state === "as_before") {
      for (const undone of [step, ...begun.covers]) this.things.undone(undone);
      return {
        state: "settled",
        outcome: { as: "compensated" },
        shared_by: [step, ...begun.covers].filter((other) => other !== visit.step),
      };
    }
    if (begun.state === "denied") return { state: "settled", outcome: { as: "failed", error: begun.error } };
    if (begun.state === "unread") return { state: "settled", outcome: notChecked() };
    if (begun.state === "conflict") return { state: "settled", outcome: conflictOutcome(begun.conflict) };
    if (begun.state === "blocked")
      return { state: "settled", outcome: { as: "deferred", blocked_by: begun.blocked_by } };
    if (begun.state === "awaiting") {
      if (begun.opened !== null) core.listeners.approvalRequested(begun.opened);
      return { state: "settled", outcome: { as: "awaiting_approval" }, shared_by };
    }
    const { undo } = begun;
    return {
      state: "begun",
      shared_by,
      task: {
        ...this.taskOf(step, tool, undo, begun.is_over),
        recheck: recheckOf(begun, input.overwrite),
      },
    };
  }

  private taskOf(
    step: number,
    original_tool: string,
    undo: UndoCall,
    is_over: boolean,
  ): Omit<UndoTask, "recheck"> {
    const { tool, args, idempotency_key, read_back } = undo;
    const { skip = [] } = this.options;
    const call = { run_id: this.run_id, step, tool, original_tool, args, idempotency_key };
    return {
      call: {
        ...call,
        ...(skip.length === 0 ? {} : { skip }),
        ...(is_over && undo.state?.declared.parts ? { overwrite: true as const } : {}),
      },
      read_back,
    };
  }

  /** The executor orders single steps. A group is blocked by the dependents of any of its steps. */
  private async groupOf({ doc }: StepToUndo, overwrite: OverwriteDecision | undefined): Promise<UndoGroup> {
    if (overwrite?.to !== "before_run") return { steps: [doc!], blocked_by: [] };
    const { store } = this.core;
    return loadGroup(store, await loadRunDoc(store, this.run_id), doc!, overwrite);
  }

  private overlapsOf([first, ...covered]: UndoGroup["steps"]): number[] {
    const overlaps = this.things.overlapping(first).map(({ step }) => step);
    return overlaps.filter((step) => !covered.some((other) => other.step === step));
  }

  async complete(step: number, end: UndoEnd): Promise<StepOutcome> {
    const { core } = this;
    const { actor, principal, own_reader = false } = this.options;
    const input = { run_id: this.run_id, step, actor, principal, end, own_reader };
    const done = await core.store.transact(completeUnit(core, this.lease, input));
    core.listeners.recorded(done.records);
    if (done.status === "compensation_failed")
      return { as: "failed", error: done.error ?? "", ...conflictOf(end) };
    for (const undone of [step, ...done.covers]) this.things.undone(undone);
    return { as: done.unverified ? "unverified" : "compensated" };
  }

  clean({ call, read_back }: UndoTask, text: string): string {
    return cleanError(this.core, { args: call.args, read_back }, text);
  }

  /** Outcome of a step that is already undone: skipped, unless this same rollback undid it. */
  private fallen(step: StepDoc): StepOutcome | null {
    if (step.status !== "compensated") return null;
    const own = step.compensated_seq !== null && step.compensated_seq >= (this.options.since_seq ?? Infinity);
    return { as: own ? (step.unverified ? "unverified" : "compensated") : "skipped" };
  }
}

function outcomeOf(classified: UndoClassification): StepOutcome | null {
  if (classified.kind === "compensate") return null;
  return { as: classified.kind === "skip" ? "skipped" : classified.kind };
}

function recheckOf(
  begun: { salt: string; undo: UndoCall },
  overwrite: OverwriteDecision | undefined,
): PreRetryRead | null {
  const { state } = begun.undo;
  return (
    state && {
      read: state.read,
      async judge(current) {
        const now = compareCurrentState(begun, begun.undo, { current, overwrite });
        if (now.is === "conflict") return now.result;
        return { state: now.is === "as_before" ? "undone" : "go" };
      },
    }
  );
}
