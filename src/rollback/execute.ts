/**
 * The one executor of rollbacks, behind every door. Newest first, one at a time; each undo is recorded
 * before it runs and after it ended, so that whatever interrupts it, running it again goes on from there.
 */

import type { Core } from "../engine/core.ts";
import { conflict, forbidden, invalid, SvcError } from "../kernel/errors.ts";
import { LIMITS } from "../kernel/limits.ts";
import type { StepDoc } from "../model/run.ts";
import type { Tx } from "../store/port.ts";
import { type BeginResult, beginUnit } from "./begin.ts";
import { classify, type Standing, type Undo } from "./classify.ts";
import { completeUnit } from "./complete.ts";
import { Dependents } from "./dependents.ts";
import { acquireLease, endLease, keepLease, type Lease, releaseLease } from "./lease.ts";
import { type Loaded, loadForRollback, loadRunDoc } from "./load.ts";
import type { Compensator, Reader, UndoCheck, UndoObjection } from "./ports.ts";
import { assembleReport, type RollbackReport, STAYS, type StepOutcome } from "./report.ts";
import { type UndoTools, undoStep } from "./undo-step.ts";

export interface RollbackOptions {
  /** Who rolls back, as the ledger shows it. */
  actor: string;
  compensator: Compensator;
  reader?: Reader | null | undefined;
  verify?: UndoCheck | null | undefined;
  objection?: UndoObjection | null | undefined;
  /** Attempts in all for each compensation. */
  retries?: number | undefined;
  backoff_ms?: number | undefined;
  approve_compensations?: boolean | undefined;
  onProgress?: ((progress: RollbackProgress) => void) | undefined;
  /** Gives up at once; the undo under way stays `compensating` and is done again next time. */
  signal?: AbortSignal | undefined;
  /** Stops before the next step or attempt. */
  stop?: AbortSignal | undefined;
  /** A lease that the caller holds and will release; by default one is taken. */
  lease?: Lease | undefined;
  /** What was undone from this ledger position on counts as this rollback's own work. */
  since_seq?: number | undefined;
  /** Whether the one who rolls back still may; asked before each step is begun. */
  authorised?: (() => boolean) | undefined;
  /** Steps before this one are left as they are. */
  down_to?: number | undefined;
  /** Resolves when it is this step's turn, where undos of other runs may have to come first. */
  turn?: ((step: StepDoc) => Promise<void>) | undefined;
  /** Joins the unit in which a step's undo begins. */
  onBegin?: ((tx: Tx, step: number) => void) | undefined;
}

export type RollbackProgress =
  | { event: "begin"; step: number; tool: string; compensation_tool: string }
  | {
      event: "attempt_failed";
      step: number;
      tool: string;
      attempt: number;
      error: string;
      retry_in_ms: number | null;
    }
  | { event: "end"; step: number; tool: string; outcome: StepOutcome };

/** The rollback was told to stop. What it had done by then is recorded; running it again goes on from there. */
export class RollbackInterrupted extends SvcError {
  readonly report: RollbackReport;
  constructor(report: RollbackReport) {
    super("unavailable", "the rollback was interrupted; run it again to go on");
    this.name = "RollbackInterrupted";
    this.report = report;
  }
}

/** An agent that keeps adding steps faster than they can be looked at would keep a rollback busy for ever. */
const MAX_LOOKS_WITHOUT_PROGRESS = 20;

export async function executeRollback(
  core: Core,
  run_id: string,
  options: RollbackOptions,
): Promise<RollbackReport> {
  const tools = undoTools(options);
  const lease = options.lease ?? (await acquireLease(core, run_id));
  const heartbeat = keepLease(core, lease);
  try {
    const report = await new Rollback(core, run_id, options, tools, lease, heartbeat.lost).run();
    await heartbeat.stop();
    // A rollback that was taken over without noticing has only its own side to tell.
    if (options.lease === undefined) await endLease(core, lease);
    return report;
  } catch (error) {
    await heartbeat.stop();
    if (options.lease === undefined) await releaseLease(core, lease);
    throw error;
  }
}

export function checkRetries(retries: number): number {
  const { min, max } = LIMITS.rollback_retries;
  if (Number.isInteger(retries) && retries >= min && retries <= max) return retries;
  throw invalid(`retries: must be a whole number from ${min} to ${max}`);
}

function undoTools(options: RollbackOptions): UndoTools {
  return {
    compensator: options.compensator,
    reader: options.reader ?? null,
    verify: options.verify ?? null,
    objection: options.objection ?? null,
    retries: checkRetries(options.retries ?? LIMITS.rollback_retries.default),
    backoff_ms: options.backoff_ms ?? LIMITS.gateway_backoff_ms,
  };
}

class Rollback {
  private readonly core: Core;
  private readonly run_id: string;
  private readonly options: RollbackOptions;
  private readonly tools: UndoTools;
  private readonly lease: Lease;
  private readonly lost: AbortSignal;
  private readonly signal: AbortSignal;
  private readonly outcomes = new Map<number, StepOutcome>();
  /** Steps whose undo was tried, or has to wait for consent: each is asked once in a rollback. */
  private readonly tried = new Set<number>();
  private readonly waiting = new Set<number>();

  constructor(
    core: Core,
    run_id: string,
    options: RollbackOptions,
    tools: UndoTools,
    lease: Lease,
    lost: AbortSignal,
  ) {
    this.core = core;
    this.run_id = run_id;
    this.options = options;
    this.tools = tools;
    this.lease = lease;
    this.lost = lost;
    this.signal = options.signal === undefined ? lost : AbortSignal.any([options.signal, lost]);
  }

  async run(): Promise<RollbackReport> {
    for (let looks = 0; looks < MAX_LOOKS_WITHOUT_PROGRESS; looks++) {
      const loaded = await loadForRollback(this.core.store, this.run_id);
      const before = this.tried.size + this.waiting.size;
      const finished = await this.pass(loaded);
      if (this.tried.size + this.waiting.size > before) looks = 0;
      // The agent may have gone on meanwhile; what it added stands too.
      const { next_step } = await loadRunDoc(this.core.store, this.run_id);
      if (finished && next_step <= loaded.steps.length) return assembleReport(this.outcomes);
    }
    throw conflict(`run ${this.run_id} keeps taking new steps; halt its agent and roll back again`);
  }

  /** One visit of every step, newest first. False where new steps came that change who depends on whom. */
  private async pass(loaded: Loaded): Promise<boolean> {
    const dependents = new Dependents();
    for (const step of loaded.steps.toReversed()) {
      if (step.step < (this.options.down_to ?? 0)) break;
      this.mayGoOn();
      const manifest = step.manifest_hash === null ? undefined : loaded.manifests.get(step.manifest_hash);
      const standing = classify(step, manifest, loaded.payloads[step.step]);
      if (standing === null) {
        this.noteFallen(step);
        continue;
      }
      const blocked_by = dependents.blockersOf(step);
      const outcome = await this.outcomeOf(step, standing, blocked_by, loaded.steps.length);
      if (outcome === "stale") return false;
      this.outcomes.set(step.step, outcome);
      if (STAYS[outcome.as]) dependents.hold(step, [step.step]);
      // What needs no undo stays too; it passes on what its own dependents hold.
      else if (outcome.as === "skipped") dependents.hold(step, blocked_by);
    }
    return true;
  }

  private async outcomeOf(
    step: StepDoc,
    standing: Standing,
    blocked_by: readonly number[],
    known_steps: number,
  ): Promise<StepOutcome | "stale"> {
    if (this.tried.has(step.step)) return this.outcomes.get(step.step)!;
    if (standing.kind === "skip") return this.tell(step, { as: "skipped" });
    if (standing.kind !== "compensate") return this.tell(step, { as: standing.kind });
    if (blocked_by.length > 0) return this.tell(step, { as: "deferred", blocked_by });
    if (this.waiting.has(step.step)) return { as: "awaiting_approval" };
    await this.options.turn?.(step);
    this.mayGoOn();
    const begun = await this.begin(step, known_steps);
    if (begun.state === "stale") return "stale";
    if (begun.state === "blocked") return this.tell(step, { as: "deferred", blocked_by: begun.blocked_by });
    if (begun.state === "awaiting") {
      this.waiting.add(step.step);
      return this.tell(step, { as: "awaiting_approval" });
    }
    this.tried.add(step.step);
    return this.tell(step, await this.carryOut(step, begun.undo));
  }

  private async begin(step: StepDoc, known_steps: number): Promise<BeginResult> {
    const { core, options } = this;
    if (options.authorised?.() === false)
      throw forbidden(
        `${options.actor} may no longer roll back; what is left stands, and another operator can go on`,
      );
    const input = {
      run_id: this.run_id,
      step: step.step,
      actor: options.actor,
      approve: options.approve_compensations ?? false,
      fresh_approval_id: `apr_${core.env.uuid()}`,
      known_steps,
      blocked_by: [],
      hints: step,
    };
    const also = options.onBegin && ((tx: Tx) => options.onBegin?.(tx, step.step));
    const begun = await core.store.transact(beginUnit(core, this.lease, input, also));
    if (begun.records.length > 0) core.listeners.recorded(begun.records);
    if (begun.state === "awaiting" && begun.opened !== null) core.listeners.approvalRequested(begun.opened);
    return begun;
  }

  private async carryOut(step: StepDoc, undo: Undo): Promise<StepOutcome> {
    const { core } = this;
    const { tool } = step;
    this.progress({ event: "begin", step: step.step, tool, compensation_tool: undo.tool });
    const call = {
      run_id: this.run_id,
      step: step.step,
      tool: undo.tool,
      original_tool: tool,
      args: undo.args,
      idempotency_key: undo.idempotency_key,
    };
    const end = await undoStep({
      core,
      undo,
      call,
      tools: this.tools,
      signal: this.signal,
      waiting:
        this.options.stop === undefined ? this.signal : AbortSignal.any([this.signal, this.options.stop]),
      mayRetry: () => this.mayGoOn(),
      told: (attempt) => this.progress({ event: "attempt_failed", step: step.step, tool, ...attempt }),
    }).catch((error: unknown) => {
      this.mayGoOn();
      throw error;
    });
    const input = { run_id: this.run_id, step: step.step, actor: this.options.actor, end };
    const done = await core.store.transact(completeUnit(core, this.lease, input));
    core.listeners.recorded(done.records);
    if (done.status === "compensation_failed") return { as: "failed", error: done.error ?? "" };
    return { as: done.unverified ? "unverified" : "compensated" };
  }

  /** A step that was undone before is skipped, unless it was this very rollback that undid it. */
  private noteFallen(step: StepDoc): void {
    if (step.status !== "compensated" || this.outcomes.has(step.step)) return;
    const own = step.compensated_seq !== null && step.compensated_seq >= (this.options.since_seq ?? Infinity);
    const as = own ? (step.unverified ? "unverified" : "compensated") : "skipped";
    this.outcomes.set(step.step, { as });
  }

  private mayGoOn(): void {
    this.lost.throwIfAborted();
    if (this.options.stop?.aborted || this.signal.aborted)
      throw new RollbackInterrupted(assembleReport(this.outcomes));
  }

  private tell(step: StepDoc, outcome: StepOutcome): StepOutcome {
    this.progress({ event: "end", step: step.step, tool: step.tool, outcome });
    return outcome;
  }

  /** Whoever watches cannot disturb the rollback. */
  private progress(progress: RollbackProgress): void {
    try {
      this.options.onProgress?.(progress);
    } catch {
      // Its trouble is its own.
    }
  }
}
