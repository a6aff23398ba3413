/**
 * Runs a rollback as a background job of the server. The job's document outlives the process: if its process dies,
 * another one resumes the job.
 */

import type { EngineCore } from "../govern/core.ts";
import type { JobDoc } from "../govern/port/docs.ts";
import { allRows } from "../govern/port/pages.ts";
import type { StateStore, StoreTx } from "../govern/port/store.ts";
import {
  canRollBackOwnRuns,
  isStillAuthorized,
  type ResolvePrincipal,
  type StoredPrincipal,
} from "../govern/roles.ts";
import { messageOf, notFoundError, SvcError } from "../kernel/errors.ts";
import { asJson } from "../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../kernel/limits.ts";
import { type ChosenStep, executeCascade, stepsByRun } from "./cascade/roll-back-with.ts";
import {
  assertLeaseHeld,
  dropLease,
  LeaseHeldError,
  LeaseLostError,
  leaseNeed,
  newHolder,
  releaseLease,
  takeLeases,
  type WorkLease,
} from "./lease.ts";
import type { TreeReport } from "./plan/report.ts";
import type { OverwriteDecision } from "./ports.ts";
import { executeTreeRollback } from "./tree/roll-back-tree.ts";
import {
  checkRetries,
  executeRollback,
  RollbackInterrupted,
  type RollbackOptions,
  type UndoToolOptions,
} from "./undo/execute.ts";

/** Dependencies shared by all jobs of this server. */
export type JobTools = UndoToolOptions & {
  /** Resolves the current authority of the principal that started a job. If absent, authority is not checked again. */
  today?: ResolvePrincipal | undefined;
  /** For a preview: why nothing here can call the tool; null if something can or the answer is unknown. */
  unavailable?: ((tool: string, use: "undo" | "read") => Promise<string | null>) | undefined;
};

interface JobInput {
  by: string;
  authority?: StoredPrincipal | undefined;
  /** True if an agent rolls back its own run, which is its only authority. */
  own?: boolean | undefined;
  retries?: number | undefined;
  approve_compensations?: boolean | undefined;
  overwrite?: OverwriteDecision | undefined;
  skip?: readonly string[] | undefined;
  /** True to roll back all runs below too. */
  children?: boolean | undefined;
  /** Steps of other runs to undo, too. */
  with?: readonly ChosenStep[] | undefined;
}

interface RunningJob {
  job: JobDoc;
  /** The ended job, or null if it was interrupted and waits to be resumed. Never rejects. */
  done: Promise<JobDoc | null>;
}

/** Response body of `GET .../rollback`. The report is present once the job has ended. */
export function jobView(job: JobDoc) {
  const { run_id, state, started_ms, finished_ms, by, current_step, error } = job;
  const report = state === "running" ? null : (job.report as TreeReport | null);
  return { run_id, state, started_ms, finished_ms, by, current_step, report, error };
}

export async function getJob(store: StateStore, run_id: string): Promise<JobDoc> {
  const job = await store.get("jobs", run_id);
  if (job === undefined) throw notFoundError(`run ${run_id} has no rollback job`, "unknown_job");
  return job;
}

/** Starts a rollback job. Throws a conflict while any rollback of the run is in progress. */
export async function startJob(
  core: EngineCore,
  run_id: string,
  input: JobInput,
  tools: JobTools,
): Promise<RunningJob> {
  const options = {
    retries: checkRetries(input.retries ?? SERVICE_LIMITS.rollback_retries.default),
    approve_compensations: input.approve_compensations ?? false,
    ...(input.overwrite === undefined ? {} : { overwrite: input.overwrite }),
    ...(input.skip === undefined ? {} : { skip: input.skip }),
    ...(input.children === true ? { children: true as const } : {}),
    ...(input.with === undefined || input.with.length === 0 ? {} : { with: input.with }),
  };
  const holder = newHolder(core);
  const { job, leases } = await core.store.transact({
    needs: [["runs", run_id], ["jobs", run_id], leaseNeed(run_id)],
    run(tx: StoreTx) {
      const now = core.env.now();
      const leases = takeLeases(core, tx, coveredRuns(run_id, options), holder);
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
      return { job, leases };
    },
  });
  return { job, done: runJob(core, job, leases, tools) };
}

/** The run, and the other runs that the job undoes steps of. */
const coveredRuns = (run_id: string, { with: chosen = [] }: Pick<JobDoc["options"], "with">): string[] => [
  run_id,
  ...stepsByRun(run_id, chosen).keys(),
];

/** Resumes every job whose process is gone. Jobs with a live process are left alone. */
export async function resumeJobs(core: EngineCore, tools: JobTools): Promise<RunningJob[]> {
  const resumed: RunningJob[] = [];
  for await (const { doc } of allRows(core.store, "jobs", { tag: "running" })) {
    const taken = await takeOver(core, doc.run_id);
    if (taken !== null) resumed.push({ job: taken.job, done: runJob(core, taken.job, taken.leases, tools) });
  }
  return resumed;
}

/** Resumes abandoned jobs now and every few seconds. Resolves after `signal` aborts and its own jobs have ended. */
export async function watchJobs(core: EngineCore, tools: JobTools, signal: AbortSignal): Promise<void> {
  const running = new Set<Promise<unknown>>();
  while (!signal.aborted) {
    // If the store is unavailable, the next round tries again.
    for (const { done } of await resumeJobs(core, tools).catch(() => [])) {
      const tracked = done.finally(() => running.delete(tracked));
      running.add(tracked);
    }
    await core.env.sleep(SERVICE_LIMITS.lease_heartbeat_ms, signal).catch(() => {});
  }
  await Promise.all(running);
}

async function takeOver(
  core: EngineCore,
  run_id: string,
): Promise<{ job: JobDoc; leases: WorkLease[] } | null> {
  const holder = newHolder(core);
  try {
    return await core.store.transact({
      needs: [["jobs", run_id], leaseNeed(run_id)],
      run(tx: StoreTx) {
        const job = tx.get("jobs", run_id);
        if (job?.state !== "running") return null;
        return { job, leases: takeLeases(core, tx, coveredRuns(run_id, job.options), holder) };
      },
    });
  } catch (error) {
    if (error instanceof LeaseHeldError) return null;
    throw error;
  }
}

async function runJob(
  core: EngineCore,
  job: JobDoc,
  leases: readonly WorkLease[],
  tools: JobTools,
): Promise<JobDoc | null> {
  const { run_id } = job;
  const [lease] = leases as [WorkLease];
  const { children, with: chosen, ...options } = job.options;
  try {
    const asked: RollbackOptions = {
      ...tools,
      // A job continues only while its initiator is still allowed to start it.
      authorised: () =>
        isStillAuthorized(
          job.authority,
          tools.today,
          "operator",
          (now) => job.own === true && canRollBackOwnRuns(now),
        ),
      actor: job.by,
      principal: job.own ? job.authority?.principal : undefined,
      ...options,
      lease,
      since_seq: job.since_seq,
      onBegin: (tx, step) => tx.put("jobs", run_id, { ...job, current_step: step }),
    };
    const report: TreeReport =
      chosen !== undefined
        ? await executeCascade(core, run_id, { ...asked, with: chosen, leases })
        : await (children === true ? executeTreeRollback : executeRollback)(core, run_id, asked);
    return await endJob(core, job, leases, {
      state: "done",
      report: asJson(report),
      error: null,
    });
  } catch (error) {
    return await brokenOff(core, job, leases, error).catch(() => null);
  }
}

/** Leaves an interrupted job, or one that lost its store, to be resumed. Any other error ends the job. */
async function brokenOff(
  core: EngineCore,
  job: JobDoc,
  leases: readonly WorkLease[],
  error: unknown,
): Promise<JobDoc | null> {
  if (error instanceof LeaseLostError) {
    await releaseAll(core, leases.slice(1));
    return null;
  }
  const passing =
    error instanceof RollbackInterrupted || (error instanceof SvcError && error.code === "unavailable");
  if (passing) {
    await releaseAll(core, leases);
    return null;
  }
  return await endJob(core, job, leases, {
    state: "failed",
    report: null,
    error: core.redact(messageOf(error)),
  });
}

async function releaseAll(core: EngineCore, leases: readonly WorkLease[]): Promise<void> {
  for (const lease of leases) await releaseLease(core, lease);
}

async function endJob(
  core: EngineCore,
  job: JobDoc,
  [lease, ...others]: readonly WorkLease[],
  end: Pick<JobDoc, "state" | "report" | "error">,
): Promise<JobDoc> {
  const ended = await core.store.transact({
    needs: [["jobs", job.run_id], leaseNeed(job.run_id)],
    run(tx: StoreTx) {
      assertLeaseHeld(tx, lease!);
      const ended: JobDoc = { ...job, ...end, finished_ms: core.env.now(), current_step: null };
      tx.put("jobs", job.run_id, ended);
      dropLease(tx, lease!);
      return ended;
    },
  });
  await releaseAll(core, others);
  return ended;
}
