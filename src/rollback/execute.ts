/**
 * The one executor of rollbacks, behind every door. Newest first, one at a time; each undo is recorded
 * before it runs and after it ended, so that whatever interrupts it, running it again goes on from there.
 */
import type { Core } from "../engine/core.ts";
import type { Env } from "../kernel/env.ts";
import { conflict, invalid, SvcError } from "../kernel/errors.ts";
import { assertJson, type Json } from "../kernel/json.ts";
import { LIMITS } from "../kernel/limits.ts";
import type { StepDoc } from "../model/run.ts";
import type { Key, Tx } from "../port/store.ts";
import { notChecked } from "./conflict.ts";
import { Dependents } from "./dependents.ts";
import type { Desk, Look, UndoTask, Visit } from "./desk.ts";
import {
  acquireLease,
  assertHeld,
  awaitLease,
  dropLease,
  keepLease,
  type Lease,
  LostLease,
  leaseNeed,
  releaseLease,
} from "./lease.ts";
import { settleRollback } from "./left.ts";
import { LocalDesk, type LocalDeskOptions } from "./local-desk.ts";
import type { Compensator, Reader, ReadRequest, UndoCheck, UndoObjection } from "./ports.ts";
import { readEach } from "./read-each.ts";
import { assembleReport, type RollbackReport, STAYS, type StepOutcome } from "./report.ts";
import { type UndoTools, undoStep, untilAborted } from "./undo-step.ts";

/** How a rollback is carried out, wherever it is kept. */
interface WorkOptions {
  compensator: Compensator;
  reader?: Reader | null | undefined;
  verify?: UndoCheck | null | undefined;
  objection?: UndoObjection | null | undefined;
  /** Attempts in all for each compensation. */
  retries?: number | undefined;
  backoff_ms?: number | undefined;
  onProgress?: ((progress: RollbackProgress) => void) | undefined;
  /** Gives up at once; the undo under way stays `compensating` and is done again next time. */
  signal?: AbortSignal | undefined;
  /** Stops before the next step or attempt. */
  stop?: AbortSignal | undefined;
  /** Is called where a silent holder of the run's lease is waited for; without it that is a conflict at once. */
  waiting?: ((wait_ms: number) => void) | undefined;
  /** Resolves when it is this step's turn, where undos of other runs may have to come first. */
  turn?: ((step: StepDoc) => Promise<void>) | undefined;
}

/** What a rollback is carried out with, and how it is watched and stopped. */
export type UndoMeans = Omit<WorkOptions, "retries" | "turn"> & Pick<LocalDeskOptions, "own_reader">;

export interface RollbackOptions extends WorkOptions, LocalDeskOptions {
  /** A lease that the caller holds and will release; by default one is taken. */
  lease?: Lease | undefined;
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
  checkRetries(options.retries);
  const lease = options.lease ?? (await ownLease(core, run_id, options));
  const heartbeat = keepLease(core, lease);
  try {
    const desk = new LocalDesk(core, run_id, lease, options);
    const report = await workOn(desk, core.env, options, heartbeat.lost);
    await heartbeat.stop();
    // A rollback that was taken over without noticing has only its own side to report.
    await endRollback(core, run_id, lease, report, options);
    return report;
  } catch (error) {
    await heartbeat.stop();
    if (options.lease === undefined) await releaseLease(core, lease);
    throw error;
  }
}

/** Keeps with the run what was left, and lets go of a lease that was taken here. */
async function endRollback(
  core: Core,
  run_id: string,
  lease: Lease,
  report: RollbackReport,
  { lease: given, down_to }: RollbackOptions,
): Promise<void> {
  const unit = {
    needs: [["runs", run_id], leaseNeed(run_id)] satisfies Key[],
    run(tx: Tx) {
      assertHeld(tx, lease);
      settleRollback(tx, run_id, report, down_to);
      if (given === undefined) dropLease(tx, lease);
    },
  };
  await core.store.transact(unit).catch((error: unknown) => {
    if (error instanceof LostLease || given !== undefined) throw error;
  });
}

function ownLease(core: Core, run_id: string, { waiting, stop }: RollbackOptions): Promise<Lease> {
  return waiting === undefined ? acquireLease(core, run_id) : awaitLease(core, run_id, waiting, stop);
}

/** Carries out the rollback that is kept at the desk. `lost` aborts when another process took it over. */
export function workOn(
  desk: Desk,
  env: Env,
  options: WorkOptions,
  lost: AbortSignal = NEVER,
): Promise<RollbackReport> {
  return new Rollback(desk, env, options, lost).run();
}

const NEVER = new AbortController().signal;

export function checkRetries(retries: number = LIMITS.rollback_retries.default): number {
  const { min, max } = LIMITS.rollback_retries;
  if (Number.isInteger(retries) && retries >= min && retries <= max) return retries;
  throw invalid(`retries: must be a whole number from ${min} to ${max}`);
}

function undoTools(options: WorkOptions): UndoTools {
  return {
    compensator: options.compensator,
    reader: options.reader ?? null,
    verify: options.verify ?? null,
    objection: options.objection ?? null,
    retries: checkRetries(options.retries),
    backoff_ms: options.backoff_ms ?? LIMITS.rollback_backoff_ms,
  };
}

class Rollback {
  private readonly desk: Desk;
  private readonly env: Env;
  private readonly options: WorkOptions;
  private readonly tools: UndoTools;
  private readonly lost: AbortSignal;
  private readonly signal: AbortSignal;
  private readonly outcomes = new Map<number, StepOutcome>();
  /** Steps whose undo was tried, or has to wait for consent: each is asked once in a rollback. */
  private readonly asked = new Set<number>();

  constructor(desk: Desk, env: Env, options: WorkOptions, lost: AbortSignal) {
    this.desk = desk;
    this.env = env;
    this.options = options;
    this.tools = undoTools(options);
    this.lost = lost;
    this.signal = options.signal === undefined ? lost : AbortSignal.any([options.signal, lost]);
  }

  async run(): Promise<RollbackReport> {
    for (let looks = 0; looks < MAX_LOOKS_WITHOUT_PROGRESS; looks++) {
      const look = await this.desk.plan();
      const before = this.asked.size;
      const finished = await this.pass(look);
      if (this.asked.size > before) looks = 0;
      // The agent may have gone on meanwhile; what it added stands too.
      if (finished && !(await this.desk.grew(look))) return assembleReport(this.outcomes);
    }
    throw conflict(
      "run_growing",
      `run ${this.desk.run_id} keeps taking new steps; halt its agent and roll back again`,
    );
  }

  /** One visit of every step, newest first. False where new steps came that change who depends on whom. */
  private async pass(look: Look): Promise<boolean> {
    const dependents = new Dependents();
    for (const visit of look.visits) {
      this.mayGoOn();
      if (visit.fallen) {
        if (visit.outcome !== null && !this.outcomes.has(visit.step))
          this.outcomes.set(visit.step, visit.outcome);
        continue;
      }
      const { doc } = visit;
      const blocked_by = doc === undefined ? [] : dependents.blockersOf(doc);
      const outcome = await this.outcomeOf(visit, blocked_by, look);
      if (outcome === "stale") return false;
      this.outcomes.set(visit.step, outcome);
      if (doc === undefined) continue;
      if (STAYS[outcome.as]) dependents.hold(doc, [visit.step]);
      // What needs no undo stays too; it passes on what its own dependents hold.
      else if (outcome.as === "skipped") dependents.hold(doc, blocked_by);
    }
    return true;
  }

  private async outcomeOf(
    visit: Visit,
    blocked_by: readonly number[],
    look: Look,
  ): Promise<StepOutcome | "stale"> {
    if (this.asked.has(visit.step)) return this.outcomes.get(visit.step)!;
    if (visit.outcome !== null) return this.tell(visit, visit.outcome);
    if (blocked_by.length > 0) return this.tell(visit, { as: "deferred", blocked_by });
    if (visit.doc !== undefined && this.options.turn !== undefined) {
      // Undos that come first may change what is there: it is read when all of them are settled.
      await this.options.turn(visit.doc);
      this.mayGoOn();
    }
    const now = visit.read === null ? { current: undefined } : await this.current(visit.read);
    if ("problem" in now) {
      this.asked.add(visit.step);
      return this.tell(visit, notChecked(now.problem));
    }
    const begun = await this.desk.begin(visit, look, now.current);
    if (begun.state === "stale") return "stale";
    if (begun.state === "begun") {
      this.asked.add(visit.step);
      const outcome = await this.carryOut(visit, begun.task);
      this.share(begun.shared_by, outcome);
      return this.tell(visit, outcome);
    }
    // What held it back may be gone at the next look; anything else is asked once.
    if (begun.outcome.as !== "deferred") this.asked.add(visit.step);
    this.share(begun.shared_by, begun.outcome);
    return this.tell(visit, begun.outcome);
  }

  private share(steps: readonly number[] = [], outcome: StepOutcome): void {
    for (const step of steps) {
      this.asked.add(step);
      this.outcomes.set(step, outcome);
    }
  }

  private async carryOut({ step, tool, closes_ms }: Visit, task: UndoTask): Promise<StepOutcome> {
    const { desk, env, signal, tools } = this;
    this.progress({ event: "begin", step, tool, compensation_tool: task.call.tool });
    const end = await undoStep({
      env,
      task,
      tools,
      closes_ms,
      signal,
      waiting: this.options.stop === undefined ? signal : AbortSignal.any([signal, this.options.stop]),
      clean: (text) => desk.clean(task, text),
      mayRetry: () => this.mayGoOn(),
      again: async (failed) => {
        if (task.recheck === null) return { state: "go" };
        const now = await this.current(task.recheck.read);
        if ("problem" in now) return { state: "unread", why: now.problem };
        return task.recheck.judge(now.current, failed);
      },
      told: (attempt) => this.progress({ event: "attempt_failed", step, tool, ...attempt }),
    }).catch((error: unknown) => {
      this.mayGoOn();
      throw error;
    });
    return "outcome" in end ? end.outcome : desk.complete(task.call.step, end);
  }

  /** What is there now. Why a read failed is not told: it may repeat what was read. */
  private async current(request: ReadRequest): Promise<{ current: Json } | { problem: string | undefined }> {
    const { reader, objection } = this.tools;
    if (reader === null) return { problem: undefined };
    const against = await objection?.([request.tool]);
    if (against) return { problem: against };
    try {
      const { signal } = this;
      const read = (one: ReadRequest) => reader(one, signal, this.desk.run_id);
      const current = await untilAborted(() => readEach(read, request, signal), signal);
      assertJson(current, "current");
      return { current };
    } catch {
      this.mayGoOn();
      return { problem: `${request.tool} could not be read` };
    }
  }

  private mayGoOn(): void {
    this.lost.throwIfAborted();
    if (this.options.stop?.aborted || this.signal.aborted)
      throw new RollbackInterrupted(assembleReport(this.outcomes));
  }

  private tell({ step, tool }: Visit, outcome: StepOutcome): StepOutcome {
    this.progress({ event: "end", step, tool, outcome });
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
