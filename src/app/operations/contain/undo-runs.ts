/** Rolling back every run of a containment: all their steps in one order, each run under its own lease. */
import type { Core } from "../../../engine/core.ts";
import { type Lease, releaseLease } from "../../../engine/lease.ts";
import { messageOf, SvcError } from "../../../kernel/errors.ts";
import { LIMITS } from "../../../kernel/limits.ts";
import { isSealed, type RunDoc } from "../../../model/run.ts";
import type { ContainmentDoc } from "../../../port/docs.ts";
import { allRows } from "../../../port/pages.ts";
import { executeRollback } from "../../../rollback/execute.ts";
import { type RunToUndo, rollBackInOrder, type Turn } from "../../../rollback/in-order.ts";
import { acquireLease, HeldLease, WORKER_LEASE_MS } from "../../../rollback/lease.ts";
import type { App } from "../../app.ts";
import { type RunContainment, undoneIn } from "./report.ts";
import type { RunInScope } from "./scope.ts";
import { foretell, newestToUndo, runLabels } from "./survey.ts";

interface UndoControl {
  /** Aborts when the containment was taken over. */
  signal: AbortSignal;
  authorised(): boolean;
  /** Throws where the containment has to stop. */
  mayGoOn(): void;
}

/** A rollback of a run by another process is waited for: longer than any lease lasts that was left behind. */
const PATIENCE_MS = WORKER_LEASE_MS + LIMITS.lease_ms;
const LOOK_MS = 500;

/** What became of each run, newest first. */
export async function undoRuns(
  app: App,
  job: ContainmentDoc,
  runs: readonly RunInScope[],
  control: UndoControl,
): Promise<RunContainment[]> {
  const told = new Map<string, RunContainment>();
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
  for (const run of await foretell(app, untouched, "yes")) told.set(run.run_id, run);
  await rollBackInOrder(order, async (run_id, turn) => {
    told.set(run_id, await undoRun(app, job, todo.get(run_id)!, turn, control));
  });
  return runs.toReversed().map(({ run }) => told.get(run.run_id)!);
}

async function undoRun(
  app: App,
  job: ContainmentDoc,
  one: RunInScope,
  turn: Turn,
  control: UndoControl,
): Promise<RunContainment> {
  const { core, jobTools, background } = app;
  const { run, down_to } = one;
  let lease: Lease | undefined;
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
    return undoneIn(runLabels(run), report, await toolsOf(core, run));
  } catch (error) {
    control.mayGoOn();
    if (error instanceof SvcError && error.code === "unavailable") throw error;
    // What is wrong with this run holds up no other.
    const [told] = await foretell(app, [one], "yes");
    return { ...told!, undone: [], error: core.redact(messageOf(error)) };
  } finally {
    if (lease !== undefined) await releaseLease(core, lease);
  }
}

/** Whoever rolls the run back already is given the time to end, or to be found dead. */
async function leaseOf(core: Core, run: RunDoc, control: UndoControl): Promise<Lease> {
  const until = core.env.elapsed() + PATIENCE_MS;
  for (;;) {
    try {
      return await acquireLease(core, run.run_id);
    } catch (error) {
      const busy = error instanceof HeldLease;
      if (!busy || !isSealed(run) || core.env.elapsed() >= until) throw error;
    }
    await core.env.sleep(LOOK_MS, control.signal);
    control.mayGoOn();
  }
}

async function toolsOf(core: Core, { run_id }: RunDoc): Promise<(step: number) => string> {
  const tools = new Map<number, string>();
  for await (const { doc } of allRows(core.store, "steps", { owner: run_id })) tools.set(doc.step, doc.tool);
  return (step) => tools.get(step) ?? "";
}
