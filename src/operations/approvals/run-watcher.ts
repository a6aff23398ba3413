/**
 * Waits for new records of a run. One watcher per store reads new records and wakes the waiters of the runs they name.
 * So the cost of a commit does not depend on the number of waiters, and commits of other processes count too.
 */
import type { StateStore } from "../../govern/port/store.ts";
import { unconfinedStore } from "../../store/tenant-store.ts";

const PAGE = 1_000;
/** Delay before a failed store is read again. */
const AGAIN_MS = 1_000;
const RUN_ID = /"run_id":"([^"\\]+)"/;

interface RunWait {
  /** Resolves when no later record can be missed. Read the state then, before waiting for `woken`. */
  ready: Promise<void>;
  /** Resolves when the run has a new record, the signal is aborted, or the store has failed. */
  woken: Promise<void>;
}

class RunWaits {
  private readonly store: StateStore;
  private readonly waiting = new Map<string, Set<() => void>>();
  private started: Promise<void> | null = null;
  private idle = new AbortController();

  constructor(store: StateStore) {
    this.store = store;
  }

  wait(run_id: string, signal: AbortSignal): RunWait {
    const woken = new Promise<void>((resolve) => {
      const waiters = this.waiting.get(run_id) ?? new Set();
      this.waiting.set(run_id, waiters);
      const wake = () => {
        signal.removeEventListener("abort", wake);
        waiters.delete(wake);
        if (waiters.size === 0 && this.waiting.get(run_id) === waiters) this.waiting.delete(run_id);
        if (this.waiting.size === 0) this.idle.abort();
        resolve();
      };
      waiters.add(wake);
      signal.addEventListener("abort", wake, { once: true });
      if (signal.aborted) wake();
    });
    this.started ??= this.start();
    return { ready: this.started, woken };
  }

  private async start(): Promise<void> {
    try {
      const { records } = await this.store.head();
      void this.watch(records);
    } catch (error) {
      this.started = null;
      throw error;
    }
  }

  private async watch(from: number): Promise<void> {
    let seen = from;
    while (this.waiting.size > 0) {
      if (this.idle.signal.aborted) this.idle = new AbortController();
      // Watch before reading: a commit between the two must not be missed.
      const change = this.changed();
      try {
        seen = await this.wakeFrom(seen);
      } catch {
        // Each waiter then reads the store and gets the error itself.
        this.wakeAll();
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS).unref());
        continue;
      }
      await change;
    }
    this.started = null;
  }

  /** Never rejects: the store can be closed while callers wait, and they learn that from their own reads. */
  private async changed(): Promise<void> {
    try {
      await this.store.changed(this.idle.signal);
    } catch {}
  }

  private async wakeFrom(from: number): Promise<number> {
    const { records } = await this.store.head();
    let seen = from;
    while (seen < records) {
      const lines = await this.store.records({ from: seen, to: records - 1, limit: PAGE });
      if (lines.length === 0) return records;
      for (const line of lines) {
        const run_id = RUN_ID.exec(line)?.[1];
        if (run_id !== undefined) for (const wake of [...(this.waiting.get(run_id) ?? [])]) wake();
      }
      seen += lines.length;
    }
    return seen;
  }

  private wakeAll(): void {
    for (const waiters of [...this.waiting.values()]) for (const wake of [...waiters]) wake();
  }
}

const known = new WeakMap<StateStore, RunWaits>();

export function runWaitsOf(store: StateStore): RunWaits {
  const whole = unconfinedStore(store);
  const waits = known.get(whole) ?? new RunWaits(whole);
  known.set(whole, waits);
  return waits;
}
