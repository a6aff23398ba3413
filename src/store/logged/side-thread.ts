/** The thread that does a store's slow SQLite work: checkpoints, and syncs that SQLite makes itself. */
import { serveThread, Threads } from "../../process/threads.ts";

/** What a store's thread can do, by name; `end` lets go of everything. */
export type Jobs = Record<string, (input: never) => unknown> & { end(): void };

export interface Helper {
  ask<T>(job: string, input: unknown): Promise<T>;
  close(): Promise<void>;
}

interface Order {
  job: string;
  input: unknown;
}

/** The SQLite addon does not survive being stopped in the middle of a call, or with a database open. */
const PATIENCE_MS = 3_000;
/** Its work is short bursts over strings: a small nursery costs it little and saves what it holds. */
const YOUNG_MB = 8;

export function threadHelper(entry: URL, setting: unknown): Helper {
  const threads = new Threads({
    name: "the store",
    entry,
    setting,
    // Jobs write to one database, so they go one after the other.
    most: 1,
    patience_ms: PATIENCE_MS,
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
  });
  return {
    ask: (job, input) => threads.ask({ job, input } satisfies Order),
    close: () => threads.close(),
  };
}

/** In the thread. `make` is given what the store passed to `threadHelper`. */
export function serveJobs<S>(make: (setting: S) => Jobs): void {
  serveThread((setting: S) => {
    const jobs = make(setting);
    return { work: ({ job, input }: Order) => jobs[job]!(input as never), end: () => jobs.end() };
  });
}
