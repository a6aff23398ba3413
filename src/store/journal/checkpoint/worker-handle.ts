/** The thread for a store's slow SQLite work: checkpoints, and syncs by SQLite itself. */
import { serveThread, ThreadPool } from "../../../child-process/thread-pool.ts";

/** The jobs of a store's thread, by name. `end` releases everything. */
export type WorkerJobs = Record<string, (input: never) => unknown> & { end(): void };

export interface WorkerHandle {
  ask<T>(job: string, input: unknown): Promise<T>;
  close(): Promise<void>;
}

interface NamedJob {
  job: string;
  input: unknown;
}

/** The SQLite addon does not survive termination during a call or with an open database. */
const PATIENCE_MS = 3_000;
/** The work is short bursts over strings, so a small young generation costs little and saves memory. */
const YOUNG_MB = 8;

export function startWorkerHandle(entry: URL, setting: unknown): WorkerHandle {
  const threads = new ThreadPool({
    name: "the store",
    entry,
    setting,
    // One thread, because all jobs write to one database.
    most: 1,
    patience_ms: PATIENCE_MS,
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
  });
  return {
    ask: (job, input) => threads.ask({ job, input } satisfies NamedJob),
    close: () => threads.close(),
  };
}

/** Runs inside the thread. `make` receives the setting that the store passed to `threadHelper`. */
export function serveJobs<S>(make: (setting: S) => WorkerJobs): void {
  serveThread((setting: S) => {
    const jobs = make(setting);
    return { work: ({ job, input }: NamedJob) => jobs[job]!(input as never), end: () => jobs.end() };
  });
}
