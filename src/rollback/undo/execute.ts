/**
 * Executes rollbacks for every entry point: newest step first, one at a time. Each undo is recorded before it runs and
 * after it ends, so an interrupted rollback resumes when it is started again.
 */
import type { EngineCore } from "../../govern/core.ts";
import { joinOnFailedUndos } from "../../govern/incidents/join-incident.ts";
import type { DocKey, StoreTx } from "../../govern/port/store.ts";
import type { RuntimeEnv } from "../../kernel/env.ts";
import { conflictError, invalidError, SvcError } from "../../kernel/errors.ts";
import { assertJson, type JsonValue } from "../../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import type { RollbackBackend, RollbackSnapshot, StepToUndo, UndoTask } from "../backend/backend.ts";
import { LocalRollbackBackend, type LocalRollbackOptions } from "../backend/local-backend.ts";
import {
  acquireLease,
  assertLeaseHeld,
  awaitLease,
  dropLease,
  LeaseLostError,
  leaseNeed,
  releaseLease,
  startHeartbeat,
  type WorkLease,
} from "../lease.ts";
import { needsUndo } from "../plan/classify.ts";
import { notChecked } from "../plan/conflict.ts";
import { DependentSteps } from "../plan/dependents.ts";
import { settleRollback } from "../plan/leftovers.ts";
import type { UndoStepFn } from "../plan/multi-run.ts";
import {
  assembleReport,
  OUTCOME_LEAVES_STEP_ACTIVE,
  type RollbackReport,
  type StepOutcome,
} from "../plan/report.ts";
import type { CompensatorFn, ReaderFn, ReadRequest, UndoCheck, UndoObjection } from "../ports.ts";
import { readEach } from "./read-each.ts";
import { type UndoTools, undoStep, untilAborted } from "./undo-step.ts";

/** Options common to local and remote rollbacks. */
interface WorkOptions {
  compensator: CompensatorFn;
  reader?: ReaderFn | null | undefined;
  /** Whether the reader can use this tool. Absent: it can use every tool. */
  reads?: ((tool: string) => boolean) | undefined;
  verify?: UndoCheck | null | undefined;
  objection?: UndoObjection | null | undefined;
  /** Total attempts for each compensation. */
  retries?: number | undefined;
  backoff_ms?: number | undefined;
  onProgress?: ((progress: RollbackProgress) => void) | undefined;
  /** Aborts at once. The undo in progress stays `compensating` and is repeated by the next rollback. */
  signal?: AbortSignal | undefined;
  /** Stops before the next step or attempt. */
  stop?: AbortSignal | undefined;
  /**
   * Called when the rollback waits for a silent holder of the run's lease. Without this callback a held lease is a
   * conflict.
   */
  waiting?: ((wait_ms: number) => void) | undefined;
  /** Resolves when it is this step's turn; undos of other runs may come first. */
  turn?: UndoStepFn | undefined;
}

/** Tools of a rollback, and the ways to observe and stop it. */
export type UndoToolOptions = Omit<WorkOptions, "retries" | "turn"> &
  Pick<LocalRollbackOptions, "own_reader">;

export interface RollbackOptions extends WorkOptions, LocalRollbackOptions {
  /** A lease that the caller holds and releases. By default the rollback acquires one. */
  lease?: WorkLease | undefined;
}

type FailedOutcome = Extract<StepOutcome, { as: "failed" }>;
const withLine = (outcome: FailedOutcome, line: string | undefined): StepOutcome =>
  line === undefined ? outcome : { ...outcome, line };

/** `run_id` is present for a run below the one that is rolled back. */
export type RollbackProgress = { run_id?: string } & ProgressEvent;

type ProgressEvent =
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

/** Thrown when a rollback is stopped. The completed undos are recorded; running the rollback again resumes it. */
export class RollbackInterrupted extends SvcError {
  readonly report: RollbackReport;
  constructor(report: RollbackReport) {
    super("unavailable", "the rollback was interrupted; run it again to resume");
    this.name = "RollbackInterrupted";
    this.report = report;
  }
}

/** Limit on reloads without progress. An agent that keeps adding steps would otherwise keep a rollback busy forever. */
const MAX_LOOKS_WITHOUT_PROGRESS = 20;

export async function executeRollback(
  core: EngineCore,
  run_id: string,
  options: RollbackOptions,
): Promise<RollbackReport> {
  checkRetries(options.retries);
  const lease = options.lease ?? (await ownLease(core, run_id, options));
  const heartbeat = startHeartbeat(core, lease);
  try {
    const desk = new LocalRollbackBackend(core, run_id, lease, options);
    const report = await executeOnBackend(desk, core.env, options, heartbeat.lost);
    await heartbeat.stop();
    // If another process has taken over unnoticed, this report covers only the work of this process.
    await endRollback(core, run_id, lease, report, options);
    return report;
  } catch (error) {
    await heartbeat.stop();
    if (options.lease === undefined) await releaseLease(core, lease);
    throw error;
  }
}

/** Stores the steps that were left with the run, and releases a lease that this rollback acquired. */
async function endRollback(
  core: EngineCore,
  run_id: string,
  lease: WorkLease,
  report: RollbackReport,
  { lease: given, down_to, only }: RollbackOptions,
): Promise<void> {
  const unit = {
    needs: [["runs", run_id], leaseNeed(run_id)] satisfies DocKey[],
    run(tx: StoreTx) {
      assertLeaseHeld(tx, lease);
      settleRollback(tx, run_id, report, (step) => step >= (down_to ?? 0) && only?.has(step) !== false);
      joinOnFailedUndos(core, tx, run_id, failedUndosOf(report));
      if (given === undefined) dropLease(tx, lease);
    },
  };
  await core.store.transact(unit).catch((error: unknown) => {
    if (error instanceof LeaseLostError || given !== undefined) throw error;
  });
}

function failedUndosOf({ failed }: RollbackReport): Parameters<typeof joinOnFailedUndos>[3] {
  const steps = (conflict: boolean) =>
    failed.filter((one) => (one.conflict === true) === conflict).map(({ step }) => step);
  return { failed: steps(false), conflicts: steps(true) };
}

function ownLease(core: EngineCore, run_id: string, { waiting, stop }: RollbackOptions): Promise<WorkLease> {
  return waiting === undefined ? acquireLease(core, run_id) : awaitLease(core, run_id, waiting, stop);
}

/** Executes a rollback through the given backend. `lost` aborts when another process takes the rollback over. */
export function executeOnBackend(
  desk: RollbackBackend,
  env: RuntimeEnv,
  options: WorkOptions,
  lost: AbortSignal = NEVER,
): Promise<RollbackReport> {
  return new Rollback(desk, env, options, lost).run();
}

const NEVER = new AbortController().signal;

export function checkRetries(retries: number = SERVICE_LIMITS.rollback_retries.default): number {
  const { min, max } = SERVICE_LIMITS.rollback_retries;
  if (Number.isInteger(retries) && retries >= min && retries <= max) return retries;
  throw invalidError(`retries: must be a whole number from ${min} to ${max}`);
}

function undoTools(options: WorkOptions): UndoTools {
  return {
    compensator: options.compensator,
    readerOf: (tool) => (options.reads?.(tool) === false ? null : (options.reader ?? null)),
    verify: options.verify ?? null,
    objection: options.objection ?? null,
    retries: checkRetries(options.retries),
    backoff_ms: options.backoff_ms ?? SERVICE_LIMITS.rollback_backoff_ms,
  };
}

/** A step that stays blocks what it depends on. One without an effect passes its own blockers on. */
function keepStep(dependents: DependentSteps, { doc, fallen, step }: StepToUndo): void {
  if (doc === undefined || fallen) return;
  dependents.hold(doc, needsUndo(doc) ? [step] : dependents.blockersOf(doc));
}

class Rollback {
  private readonly desk: RollbackBackend;
  private readonly env: RuntimeEnv;
  private readonly options: WorkOptions;
  private readonly tools: UndoTools;
  private readonly lost: AbortSignal;
  private readonly signal: AbortSignal;
  private readonly outcomes = new Map<number, StepOutcome>();
  /** Steps whose undo was attempted or awaits approval. A rollback begins each of them only once. */
  private readonly asked = new Set<number>();

  constructor(desk: RollbackBackend, env: RuntimeEnv, options: WorkOptions, lost: AbortSignal) {
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
      // The agent may have added steps since the plan was loaded; those have to be undone too.
      if (finished && !(await this.desk.grew(look))) return assembleReport(this.outcomes);
    }
    throw conflictError(
      "run_growing",
      `run ${this.desk.run_id} keeps taking new steps; halt its agent and roll back again`,
    );
  }

  /** Visits every step once, newest first. Returns false if new steps changed the dependencies. */
  private async pass(look: RollbackSnapshot): Promise<boolean> {
    const dependents = new DependentSteps();
    for (const visit of look.visits) {
      this.mayGoOn();
      if (visit.kept === true) {
        keepStep(dependents, visit);
        continue;
      }
      if (visit.fallen) {
        if (visit.outcome !== null && !this.outcomes.has(visit.step))
          this.outcomes.set(visit.step, visit.outcome);
        continue;
      }
      const { doc } = visit;
      const blocked_by = doc === undefined ? [] : dependents.blockersOf(doc);
      const outcome = await this.outcomeOf(visit, blocked_by, look);
      if (outcome === "stale") return false;
      this.outcomes.set(visit.step, outcome.as === "failed" ? withLine(outcome, doc?.line) : outcome);
      if (doc === undefined) continue;
      if (OUTCOME_LEAVES_STEP_ACTIVE[outcome.as]) dependents.hold(doc, [visit.step]);
      // A step that needs no undo stays too, and passes its own blockers on.
      else if (outcome.as === "skipped") dependents.hold(doc, blocked_by);
    }
    return true;
  }

  private async outcomeOf(
    visit: StepToUndo,
    blocked_by: readonly number[],
    look: RollbackSnapshot,
  ): Promise<StepOutcome | "stale"> {
    if (this.asked.has(visit.step)) return this.outcomes.get(visit.step)!;
    if (visit.outcome !== null) return this.tell(visit, visit.outcome);
    if (blocked_by.length > 0) return this.tell(visit, { as: "deferred", blocked_by });
    const place = visit.doc ?? visit.place;
    if (place !== undefined && this.options.turn !== undefined) {
      // Earlier undos may change the resource, so read its state only after they have settled.
      await this.options.turn(place);
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
    // A deferred step may be unblocked at the next pass. Any other step is begun only once.
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

  private async carryOut({ step, tool, closes_ms }: StepToUndo, task: UndoTask): Promise<StepOutcome> {
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

  /** Reads the current state. The reader's error is not reported, because it may repeat the values read. */
  private async current(
    request: ReadRequest,
  ): Promise<{ current: JsonValue } | { problem: string | undefined }> {
    const { readerOf, objection } = this.tools;
    const reader = readerOf(request.tool);
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

  private tell({ step, tool }: StepToUndo, outcome: StepOutcome): StepOutcome {
    this.progress({ event: "end", step, tool, outcome });
    return outcome;
  }

  /** A failing observer must not disturb the rollback. */
  private progress(progress: RollbackProgress): void {
    try {
      this.options.onProgress?.(progress);
    } catch {
      // Ignored: the error belongs to the observer.
    }
  }
}
