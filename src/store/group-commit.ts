/**
 * Group commit: units that arrive while a batch is being made durable form the next batch. There is no
 * timer and no added wait when idle. A batch that does not finish in time is answered `unavailable`,
 * and until it does finish nothing new is let in, so that a hung disk never holds callers.
 */
import { SvcError } from "../kernel/errors.ts";
import { LIMITS } from "../kernel/limits.ts";
import type { Pending } from "./batch.ts";
import type { Unit } from "./port.ts";

const MAX_BATCH = 512;

/**
 * Runs every unit of the batch and makes the result durable, or throws and leaves nothing. At `until`
 * (a time of performance.now) nobody waits for it any more.
 */
export type CommitBatch = (batch: readonly Pending[], until: number) => Promise<void>;

interface Waiting extends Pending {
  readonly since: number;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

export class GroupCommit {
  private queue: Waiting[] = [];
  private running: Promise<void> | undefined;
  private overdue = false;
  private closed = false;
  private readonly commit: CommitBatch;
  private readonly deadline_ms: number;

  constructor(commit: CommitBatch, deadline_ms: number = LIMITS.store_deadline_ms) {
    this.commit = commit;
    this.deadline_ms = deadline_ms;
  }

  submit<T>(unit: Unit<T>): Promise<T> {
    if (this.closed) return Promise.reject(new SvcError("unavailable", "the store is closed"));
    if (this.overdue) return Promise.reject(slow());
    return new Promise<T>((resolve, reject) => {
      this.queue.push({
        unit,
        outcome: undefined,
        since: performance.now(),
        resolve: resolve as (value: unknown) => void,
        reject,
      });
      this.running ??= this.drain();
    });
  }

  /** How many units wait for their batch. */
  get depth(): number {
    return this.queue.length;
  }

  async close(): Promise<void> {
    this.closed = true;
    if (!this.overdue) await this.running;
  }

  private async drain(): Promise<void> {
    // Everything that is read in this turn of the event loop joins the first batch; nothing is waited for.
    await new Promise(setImmediate);
    while (this.queue.length > 0) {
      const batch = this.queue.splice(0, MAX_BATCH);
      await this.runBatch(batch);
    }
    this.running = undefined;
  }

  private async runBatch(batch: Waiting[]): Promise<void> {
    // Counted from when the oldest unit came: time spent behind a slow batch is time waited, too.
    const until = batch[0]!.since + this.deadline_ms;
    const timer = setTimeout(
      () => {
        this.overdue = true;
        for (const waiting of batch.concat(this.queue.splice(0))) waiting.reject(slow());
      },
      Math.max(0, until - performance.now()),
    );
    try {
      await this.commit(batch, until);
      for (const waiting of batch) settle(waiting);
    } catch (error) {
      const failure = error instanceof SvcError ? error : unavailable(error);
      for (const waiting of batch) waiting.reject(failure);
    } finally {
      clearTimeout(timer);
      this.overdue = false;
    }
  }
}

function settle(waiting: Waiting): void {
  const { outcome } = waiting;
  if (outcome === undefined)
    waiting.reject(new SvcError("unavailable", "the store did not run this request"));
  else if (outcome.ok) waiting.resolve(outcome.value);
  else waiting.reject(outcome.error);
}

function slow(): SvcError {
  return new SvcError("unavailable", "ledger unavailable: the store does not answer in time");
}

function unavailable(cause: unknown): SvcError {
  const code = (cause as { code?: unknown } | null)?.code;
  const hint = typeof code === "string" ? ` (${code})` : "";
  return new SvcError("unavailable", `ledger unavailable: the record could not be made durable${hint}`, {
    cause,
  });
}
