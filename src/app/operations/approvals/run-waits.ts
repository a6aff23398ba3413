/**
 * Waiting until something happens in a run. One watcher a store reads what was recorded and wakes those who wait for
 * the runs it names: a commit costs the same however many wait, and other processes' commits count, too.
 */
import type { Store } from "../../../port/store.ts";
import { wholeOf } from "../../../store/confined.ts";

const PAGE = 1_000;
/** How soon a store that failed is looked at again. */
const AGAIN_MS = 1_000;
const RUN_ID = /"run_id":"([^"\\]+)"/;

interface RunWait {
  /** Nothing that is recorded from here on is missed: look now, then wait. */
  ready: Promise<void>;
  /** The run has a new record, the signal was aborted, or the store has to be looked at. */
  woken: Promise<void>;
}

class RunWaits {
  private readonly store: Store;
  private readonly waiting = new Map<string, Set<() => void>>();
  private started: Promise<void> | null = null;
  private idle = new AbortController();

  constructor(store: Store) {
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
      // Watch first, then read: a commit between the two must not be missed.
      const change = this.store.changed(this.idle.signal);
      try {
        seen = await this.wakeFrom(seen);
      } catch {
        // Those who wait look for themselves, and are told what is wrong.
        this.wakeAll();
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS).unref());
        continue;
      }
      await change.catch(() => {});
    }
    this.started = null;
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

const known = new WeakMap<Store, RunWaits>();

export function runWaitsOf(store: Store): RunWaits {
  const whole = wholeOf(store);
  const waits = known.get(whole) ?? new RunWaits(whole);
  known.set(whole, waits);
  return waits;
}
