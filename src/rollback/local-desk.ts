/** A rollback kept in the store of this process, under the run's lease. */
import type { Core } from "../engine/core.ts";
import { forbidden, SvcError } from "../kernel/errors.ts";
import type { Json } from "../kernel/json.ts";
import type { StepDoc } from "../model/run.ts";
import type { Tx } from "../port/store.ts";
import { beginUnit } from "./begin.ts";
import { classify, type Standing, type UndoCall } from "./classify.ts";
import { cleanError, completeUnit, type UndoEnd } from "./complete.ts";
import { conflictOf, conflictOutcome, notChecked, stateNow } from "./conflict.ts";
import type { Begun, Desk, Look, Recheck, UndoTask, Visit } from "./desk.ts";
import type { Lease } from "./lease.ts";
import { loadForRollback, loadGroup, loadRunDoc, type UndoGroup } from "./load.ts";
import type { Overwrite } from "./ports.ts";
import type { StepOutcome } from "./report.ts";
import { type Stated, Things } from "./things.ts";

export interface LocalDeskOptions {
  /** Who rolls back, as the ledger shows it. */
  actor: string;
  /** Who rolls back on no other authority than having opened the run: its undos are self-reported. */
  principal?: string | undefined;
  approve_compensations?: boolean | undefined;
  overwrite?: Overwrite | undefined;
  /** What was undone from this ledger position on counts as this rollback's own work. */
  since_seq?: number | undefined;
  /** Whether the one who rolls back still may; asked before each step is begun. */
  authorised?: (() => boolean | Promise<boolean>) | undefined;
  /** Steps before this one are left as they are. */
  down_to?: number | undefined;
  /** The reader is the service's own, its gateway's or its operator's: what it confirms gives back what limits counted. */
  own_reader?: boolean | undefined;
  /** Joins the unit in which a step's undo begins. */
  onBegin?: ((tx: Tx, step: number) => void) | undefined;
}

export class LocalDesk implements Desk {
  private readonly core: Core;
  readonly run_id: string;
  private readonly lease: Lease;
  private readonly options: LocalDeskOptions;
  private things = new Things([]);

  constructor(core: Core, run_id: string, lease: Lease, options: LocalDeskOptions) {
    this.core = core;
    this.run_id = run_id;
    this.lease = lease;
    this.options = options;
  }

  async plan(): Promise<Look> {
    const { steps, manifests, payloads } = await loadForRollback(this.core.store, this.run_id);
    const now = this.core.env.now();
    const stated: Stated[] = [];
    const visits = steps.slice(this.options.down_to ?? 0).map((doc): Visit => {
      const manifest = doc.manifest_hash === null ? undefined : manifests.get(doc.manifest_hash);
      const standing = classify(doc, manifest, payloads[doc.step], now);
      const { step, tool } = doc;
      const outcome = standing === null ? this.fallen(doc) : outcomeOf(standing);
      const state = standing?.kind === "compensate" ? standing.undo.state : null;
      if (state !== null) stated.push({ doc, state });
      return {
        step,
        tool,
        outcome,
        fallen: standing === null,
        read: state?.read ?? null,
        closes_ms: doc.closes_ms,
        doc,
      };
    });
    this.things = new Things(stated);
    return { visits: visits.reverse(), known_steps: steps.length };
  }

  async grew({ known_steps }: Look): Promise<boolean> {
    return (await loadRunDoc(this.core.store, this.run_id)).next_step > known_steps;
  }

  async begin(visit: Visit, { known_steps }: Look, current?: Json): Promise<Begun> {
    const { core, options } = this;
    const overwrite = options.overwrite?.step === visit.step ? options.overwrite : undefined;
    const group = await this.groupOf(visit, overwrite);
    const [{ step, tool }, ...newer] = group.steps;
    const covers = newer.map((covered) => covered.step);
    const shared_by = [step, ...covers].filter((other) => other !== visit.step);
    if ((await options.authorised?.()) === false)
      throw forbidden(
        `${options.actor} may no longer roll back; what is left stands, and another operator can go on`,
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
      beside: this.besideOf(group.steps),
      hints: group.steps[0],
      current,
      overwrite,
      covers: covers.length === 0 ? undefined : covers,
    };
    const also = options.onBegin && ((tx: Tx) => options.onBegin?.(tx, step));
    const begun = await core.store
      .transact(beginUnit(core, this.lease, input, also))
      .catch((error: unknown): { state: "closed"; records: [] } => {
        if (error instanceof SvcError && error.extra?.closed === true)
          return { state: "closed", records: [] };
        throw error;
      });
    if (begun.records.length > 0) core.listeners.recorded(begun.records);
    if (begun.state === "stale") return { state: "stale" };
    // It closed while newer steps were undone: older ones still can be.
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
      task: { ...taskOf(this.run_id, step, tool, undo), recheck: recheckOf(begun, input.overwrite) },
    };
  }

  /** The executor keeps the order of single steps; a group is held back by what depends on any of its steps. */
  private async groupOf({ doc }: Visit, overwrite: Overwrite | undefined): Promise<UndoGroup> {
    if (overwrite?.to !== "before_run") return { steps: [doc!], blocked_by: [] };
    const { store } = this.core;
    return loadGroup(store, await loadRunDoc(store, this.run_id), doc!, overwrite);
  }

  private besideOf([first, ...covered]: UndoGroup["steps"]): number[] {
    const beside = this.things.beside(first).map(({ step }) => step);
    return beside.filter((step) => !covered.some((other) => other.step === step));
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

  /** A step that was undone before is skipped, unless it was this very rollback that undid it. */
  private fallen(step: StepDoc): StepOutcome | null {
    if (step.status !== "compensated") return null;
    const own = step.compensated_seq !== null && step.compensated_seq >= (this.options.since_seq ?? Infinity);
    return { as: own ? (step.unverified ? "unverified" : "compensated") : "skipped" };
  }
}

function outcomeOf(standing: Standing): StepOutcome | null {
  if (standing.kind === "compensate") return null;
  return { as: standing.kind === "skip" ? "skipped" : standing.kind };
}

function taskOf(
  run_id: string,
  step: number,
  original_tool: string,
  undo: UndoCall,
): Omit<UndoTask, "recheck"> {
  const { tool, args, idempotency_key, read_back } = undo;
  return { call: { run_id, step, tool, original_tool, args, idempotency_key }, read_back };
}

function recheckOf(
  begun: { salt: string; undo: UndoCall },
  overwrite: Overwrite | undefined,
): Recheck | null {
  const { state } = begun.undo;
  return (
    state && {
      read: state.read,
      async judge(current) {
        const now = stateNow(begun, begun.undo, { current, overwrite });
        if (now.is === "conflict") return now.result;
        return { state: now.is === "as_before" ? "undone" : "go" };
      },
    }
  );
}
