/** Rolls back every run of a containment: all steps in one global order, each run under its own lease. */
import type { EngineCore } from "../../govern/core.ts";
import { releaseLease, type WorkLease } from "../../govern/lease.ts";
import type { ContainmentDoc } from "../../govern/port/docs.ts";
import { allRows } from "../../govern/port/pages.ts";
import { isSealed, type RunDoc } from "../../govern/runs/run.ts";
import { isUndoExpired } from "../../govern/runs/undo-deadlines.ts";
import { messageOf, SvcError } from "../../kernel/errors.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { acquireLease, LeaseHeldError, WORKER_LEASE_MS } from "../../rollback/lease.ts";
import { type RunToUndo, rollBackInOrder, type UndoStepFn } from "../../rollback/plan/multi-run.ts";
import { executeRollback } from "../../rollback/undo/execute.ts";
import type { ServiceApp } from "../app.ts";
import { newestToUndo, previewRollback, runLabels } from "./preview.ts";
import { type RunContainment, runResult, type StepFacts } from "./report.ts";
import type { RunInScope } from "./scope.ts";

interface UndoControl {
  /** Aborts when another process takes the containment over. */
  signal: AbortSignal;
  authorised(): boolean;
  /** Throws if the containment has to stop. */
  mayGoOn(): void;
}

/** Longest wait for another process's rollback of a run: longer than any abandoned lease lasts. */
const PATIENCE_MS = WORKER_LEASE_MS + SERVICE_LIMITS.lease_ms;
const LOOK_MS = 500;

/** Result of each run, newest first. */
export async function undoRuns(
  app: ServiceApp,
  job: ContainmentDoc,
  runs: readonly RunInScope[],
  control: UndoControl,
): Promise<RunContainment[]> {
  const predicted = new Map<string, RunContainment>();
  const todo = new Map<string, RunInScope>();
  const order: RunToUndo[] = [];
  const untouched: RunInScope[] = [];
  for (const one of runs) {
    const newest_seq = await newestToUndo(app, one, job.since_seq);
    const { run_id } = one.run;
    if (newest_seq === null) untouched.push(one);
    else {
      todo.set(run_id, one);
      order.push({ run_id, newest_seq });
    }
  }
  for (const run of await previewRollback(app, untouched, "yes")) predicted.set(run.run_id, run);
  await rollBackInOrder(order, async (run_id, turn) => {
    predicted.set(run_id, await undoRun(app, job, todo.get(run_id)!, turn, control));
  });
  return runs.toReversed().map(({ run }) => predicted.get(run.run_id)!);
}

async function undoRun(
  app: ServiceApp,
  job: ContainmentDoc,
  one: RunInScope,
  turn: UndoStepFn,
  control: UndoControl,
): Promise<RunContainment> {
  const { core, jobTools, background } = app;
  const { run, down_to } = one;
  let lease: WorkLease | undefined;
  try {
    lease = await leaseOf(core, run, control);
    const report = await executeRollback(core, run.run_id, {
      ...jobTools!,
      actor: job.by,
      since_seq: job.since_seq,
      down_to,
      turn,
      lease,
      signal: control.signal,
      stop: background.signal,
      authorised: control.authorised,
    });
    return runResult(runLabels(run), report, await factsOf(core, run));
  } catch (error) {
    control.mayGoOn();
    if (error instanceof SvcError && error.code === "unavailable") throw error;
    // A failure of this run does not block the others.
    const [predicted] = await previewRollback(app, [one], "yes");
    return { ...predicted!, undone: [], error: core.redact(messageOf(error)) };
  } finally {
    if (lease !== undefined) await releaseLease(core, lease);
  }
}

/** Acquires the run's lease, giving another process time to finish its rollback or lose the lease. */
async function leaseOf(core: EngineCore, run: RunDoc, control: UndoControl): Promise<WorkLease> {
  const until = core.env.elapsed() + PATIENCE_MS;
  for (;;) {
    try {
      return await acquireLease(core, run.run_id);
    } catch (error) {
      const busy = error instanceof LeaseHeldError;
      if (!busy || !isSealed(run) || core.env.elapsed() >= until) throw error;
    }
    await core.env.sleep(LOOK_MS, control.signal);
    control.mayGoOn();
  }
}

async function factsOf(core: EngineCore, { run_id }: RunDoc): Promise<(step: number) => StepFacts> {
  const facts = new Map<number, StepFacts>();
  const now = core.env.now();
  for await (const { doc } of allRows(core.store, "steps", { owner: run_id }))
    facts.set(doc.step, { tool: doc.tool, closed_ms: isUndoExpired(doc, now) ? doc.closes_ms : undefined });
  return (step) => facts.get(step) ?? { tool: "", closed_ms: undefined };
}
