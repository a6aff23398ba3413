/**
 * A rollback kept by a server, through the routes of a remote worker. The server keeps order, leases and records;
 * a refusal tells what it means for the step in fields.
 */
import type { Client } from "../api/client.ts";
import { beginUndo, completeUndo, plan as planOp } from "../app/operations/rollback.ts";
import { canonical } from "../kernel/canonical.ts";
import { SvcError } from "../kernel/errors.ts";
import type { Json } from "../kernel/json.ts";
import { READ_BACK } from "../model/manifest/schema.ts";
import type { ReadBackSpec } from "../rollback/classify.ts";
import type { UndoEnd } from "../rollback/complete.ts";
import { conflictOf, conflictOutcome, notChecked } from "../rollback/conflict.ts";
import type { Begun, Desk, Look, Recheck, UndoTask, Visit } from "../rollback/desk.ts";
import type { PlanAction, RollbackPlan } from "../rollback/plan.ts";
import type { Overwrite } from "../rollback/ports.ts";
import type { CompensationTask } from "../rollback/remote.ts";
import type { StepOutcome } from "../rollback/report.ts";
import { shortened, tellable } from "./fitting.ts";
import { patiently } from "./patience.ts";

export class RemoteDesk implements Desk {
  readonly run_id: string;
  private readonly client: Client;
  private readonly overwrite: Overwrite | undefined;

  constructor(client: Client, run_id: string, overwrite?: Overwrite) {
    this.client = client;
    this.run_id = run_id;
    this.overwrite = overwrite;
  }

  async plan(): Promise<Look> {
    const { run_id } = this;
    const { actions } = (await patiently(() => this.client.perform(planOp, { run_id }))) as RollbackPlan;
    const visits = actions.map((action): Visit => {
      const { step, tool } = action;
      const read = action.kind === "compensate" ? (action.before ?? null) : null;
      const closes_ms = action.kind === "compensate" ? action.closes_ms : undefined;
      return { step, tool, outcome: outcomeOf(action), fallen: false, read, closes_ms };
    });
    return { visits, known_steps: actions.length };
  }

  async begin(visit: Visit, look: Look, current?: Json): Promise<Begun> {
    const { run_id } = this;
    const { step } = visit;
    if (current !== undefined && tellable(current) === undefined)
      return { state: "settled", outcome: notChecked() };
    const over = this.overwrite?.step === step ? { ...this.overwrite, overwrite: true } : {};
    try {
      const begun = await patiently(() => this.client.perform(beginUndo, { run_id, current, ...over, step }));
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
    const told = end.ok
      ? { status: "succeeded" as const, attempts, observed: observedOf(end) }
      : { status: "failed" as const, attempts, error: shortened(end.error) };
    const done = await patiently(() => this.client.perform(completeUndo, { run_id, step, ...told }));
    const unread = done.unverified === true || (end.ok && end.read_back?.as === "unverified");
    if (done.status === "compensated") return { as: unread ? "unverified" : "compensated" };
    return { as: "failed", error: errorOf(end), ...conflictOf(end) };
  }

  /** The server looks after each step by itself: it begins none that later ones lean on. */
  async grew(): Promise<boolean> {
    return false;
  }

  clean(_: UndoTask, text: string): string {
    return text.toWellFormed();
  }

  private taskOf(
    { verification, covers: _, ...call }: CompensationTask,
    visit: Visit,
    look: Look,
    current: Json | undefined,
  ): UndoTask {
    const read_back: ReadBackSpec | null = verification && {
      ...verification,
      retries: READ_BACK.retries.default,
      backoff_ms: READ_BACK.backoff_ms.default,
    };
    if (visit.read === null || current === undefined) return { call, read_back, recheck: null };
    let seen = current;
    const judge: Recheck["judge"] = async (now, failed) => {
      if (canonical(now) === canonical(seen)) return { state: "go" };
      // What counts of it only the server can tell, and it is asked by beginning anew.
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

/** What the server's refusal says of the step; one that is not about the step ends the rollback. */
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

/** A read-back that failed was made all the same: it showed nothing. One that cannot be told leaves the undo unverified. */
function observedOf({ read_back }: Extract<UndoEnd, { ok: true }>): Json | undefined {
  if (read_back === null || read_back.as === "unverified") return undefined;
  return tellable(read_back.observed ?? null);
}

function errorOf(end: UndoEnd): string {
  if (!end.ok) return end.error;
  return end.read_back?.as === "verification_failed" ? end.read_back.error : "the server did not confirm it";
}
