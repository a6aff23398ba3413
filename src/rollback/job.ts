/**
 * A rollback as a job of the server. Its state is a document that outlives the process: a job whose
 * holder died is carried on by whichever process finds it first.
 */
import type { Core } from "../engine/core.ts";
import { loadSealedRun } from "../engine/load-run.ts";
import { messageOf, notFound, SvcError } from "../kernel/errors.ts";
import type { Json } from "../kernel/json.ts";
import { LIMITS } from "../kernel/limits.ts";
import { type KeptPrincipal, mayUndoOwn, stillHolds, type Today } from "../model/roles.ts";
import type { JobDoc } from "../port/docs.ts";
import { allRows } from "../port/pages.ts";
import type { Store, Tx } from "../port/store.ts";
import { checkRetries, executeRollback, RollbackInterrupted, type UndoMeans } from "./execute.ts";
import {
  assertHeld,
  dropLease,
  HeldLease,
  type Lease,
  LostLease,
  leaseNeed,
  newHolder,
  releaseLease,
  takeLease,
} from "./lease.ts";
import { markUnfinished } from "./left.ts";
import type { Overwrite } from "./ports.ts";
import type { RollbackReport } from "./report.ts";

/** What every job of this server works with. */
export type JobTools = UndoMeans & {
  /** The authority of whoever started a job, as it is now; without it none is looked at. */
  today?: Today | undefined;
  /** Why nothing here can call the tool, for a preview; null where something can, or that is not known. */
  unavailable?: ((tool: string) => Promise<string | null>) | undefined;
};

interface JobInput {
  by: string;
  authority?: KeptPrincipal | undefined;
  /** An agent rolls back its own run, on no other authority than that. */
  own?: boolean | undefined;
  retries?: number | undefined;
  approve_compensations?: boolean | undefined;
  overwrite?: Overwrite | undefined;
}

interface RunningJob {
  job: JobDoc;
  /** The job as it ended, or null where it was interrupted and waits to be carried on. Never rejects. */
  done: Promise<JobDoc | null>;
}

/** What `GET .../rollback` shows. A report is there once the job has ended. */
export function jobView(job: JobDoc) {
  const { run_id, state, started_ms, finished_ms, by, current_step, error } = job;
  const report = state === "running" ? null : (job.report as RollbackReport | null);
  return { run_id, state, started_ms, finished_ms, by, current_step, report, error };
}

export async function getJob(store: Store, run_id: string): Promise<JobDoc> {
  const job = await store.get("jobs", run_id);
  if (job === undefined) throw notFound(`run ${run_id} has no rollback job`, "unknown_job");
  return job;
}

/** Throws a conflict while a rollback of the run is under way, by whatever door. */
export async function startJob(
  core: Core,
  run_id: string,
  input: JobInput,
  tools: JobTools,
): Promise<RunningJob> {
  const options = {
    retries: checkRetries(input.retries ?? LIMITS.rollback_retries.default),
    approve_compensations: input.approve_compensations ?? false,
    ...(input.overwrite === undefined ? {} : { overwrite: input.overwrite }),
  };
  const holder = newHolder(core);
  const { job, lease } = await core.store.transact({
    needs: [["runs", run_id], ["jobs", run_id], leaseNeed(run_id)],
    run(tx: Tx) {
      loadSealedRun(tx, run_id);
      const now = core.env.now();
      const lease = takeLease(core, tx, run_id, holder);
      markUnfinished(tx, run_id);
      const job: JobDoc = {
        run_id,
        state: "running",
        started_ms: now,
        finished_ms: null,
        by: input.by,
        authority: input.authority,
        ...(input.own ? { own: true as const } : {}),
        current_step: null,
        report: null,
        error: null,
        options,
        since_seq: tx.head.records,
      };
      tx.put("jobs", run_id, job);
      return { job, lease };
    },
  });
  return { job, done: runJob(core, job, lease, tools) };
}

/** Carries on every job whose holder is gone. Those that a process works on are left alone. */
export async function resumeJobs(core: Core, tools: JobTools): Promise<RunningJob[]> {
  const resumed: RunningJob[] = [];
  for await (const { doc } of allRows(core.store, "jobs", { tag: "running" })) {
    const taken = await takeOver(core, doc.run_id);
    if (taken !== null) resumed.push({ job: taken.job, done: runJob(core, taken.job, taken.lease, tools) });
  }
  return resumed;
}

/** Looks for abandoned jobs now and every few seconds. Resolves once told to stop and its jobs have ended. */
export async function watchJobs(core: Core, tools: JobTools, signal: AbortSignal): Promise<void> {
  const running = new Set<Promise<unknown>>();
  while (!signal.aborted) {
    // A store that is away for a while is asked again at the next look.
    for (const { done } of await resumeJobs(core, tools).catch(() => [])) {
      const tracked = done.finally(() => running.delete(tracked));
      running.add(tracked);
    }
    await core.env.sleep(LIMITS.lease_heartbeat_ms, signal).catch(() => {});
  }
  await Promise.all(running);
}

async function takeOver(core: Core, run_id: string): Promise<{ job: JobDoc; lease: Lease } | null> {
  const holder = newHolder(core);
  try {
    return await core.store.transact({
      needs: [["jobs", run_id], leaseNeed(run_id)],
      run(tx: Tx) {
        const job = tx.get("jobs", run_id);
        if (job?.state !== "running") return null;
        return { job, lease: takeLease(core, tx, run_id, holder) };
      },
    });
  } catch (error) {
    if (error instanceof HeldLease) return null;
    throw error;
  }
}

async function runJob(core: Core, job: JobDoc, lease: Lease, tools: JobTools): Promise<JobDoc | null> {
  const { run_id } = job;
  try {
    const report = await executeRollback(core, run_id, {
      ...tools,
      // A job goes on while whoever started it could start it.
      authorised: () =>
        stillHolds(job.authority, tools.today, "operator", (now) => job.own === true && mayUndoOwn(now)),
      actor: job.by,
      principal: job.own ? job.authority?.principal : undefined,
      ...job.options,
      lease,
      since_seq: job.since_seq,
      onBegin: (tx, step) => tx.put("jobs", run_id, { ...job, current_step: step }),
    });
    return await endJob(core, job, lease, { state: "done", report: report as unknown as Json, error: null });
  } catch (error) {
    return await brokenOff(core, job, lease, error).catch(() => null);
  }
}

/** Interruptions and a store that is away leave the job to be carried on; anything else ends it. */
async function brokenOff(core: Core, job: JobDoc, lease: Lease, error: unknown): Promise<JobDoc | null> {
  if (error instanceof LostLease) return null;
  const passing =
    error instanceof RollbackInterrupted || (error instanceof SvcError && error.code === "unavailable");
  if (passing) {
    await releaseLease(core, lease);
    return null;
  }
  return await endJob(core, job, lease, {
    state: "failed",
    report: null,
    error: core.redact(messageOf(error)),
  });
}

function endJob(
  core: Core,
  job: JobDoc,
  lease: Lease,
  end: Pick<JobDoc, "state" | "report" | "error">,
): Promise<JobDoc> {
  return core.store.transact({
    needs: [["jobs", job.run_id], leaseNeed(job.run_id)],
    run(tx: Tx) {
      assertHeld(tx, lease);
      const ended: JobDoc = { ...job, ...end, finished_ms: core.env.now(), current_step: null };
      tx.put("jobs", job.run_id, ended);
      dropLease(tx, lease);
      return ended;
    },
  });
}
