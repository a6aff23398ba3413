/**
 * Group commit: units that arrive while a batch is under way form the next batch. There is no timer and no added
 * wait when idle. The next batch is run and written while the one before it is being synced, and nobody is answered
 * before both are durable. A batch that does not finish in time is answered `unavailable`, and until it does finish
 * nothing new is let in, so that a hung disk never holds callers.
 */
import { SvcError } from "../kernel/errors.ts";
import { LIMITS } from "../kernel/limits.ts";
import type { Pending } from "./batch.ts";
import { mayBeFound } from "./may-be-found.ts";
import type { Unit } from "./port.ts";

const MAX_BATCH = 512;

/** A batch that others see and that is not yet known to be durable. */
export interface Written {
  /** Rejects if the batch, or one before it, was lost. */
  readonly durable: Promise<void>;
}

/**
 * Runs every unit of the batch and writes the result, or throws and leaves nothing. What is still to be synced is
 * answered; what is durable already is not. At `until` (a time of performance.now) nobody waits for it any more.
 */
export type CommitBatch = (batch: readonly Pending[], until: number) => Promise<Written | undefined>;

interface Waiting extends Pending {
  readonly since: number;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

export class GroupCommit {
  private queue: Waiting[] = [];
  private running: Promise<void> | undefined;
  /** Ends when the batch that was written last is durable or lost; it never rejects. */
  private finishing: Promise<void> = Promise.resolve();
  /** Batches that callers were told not to wait for. */
  private overdue = 0;
  private closed = false;
  private readonly commit: CommitBatch;
  private readonly deadline_ms: number;

  constructor(commit: CommitBatch, deadline_ms: number = LIMITS.store_deadline_ms) {
    this.commit = commit;
    this.deadline_ms = deadline_ms;
  }

  submit<T>(unit: Unit<T>): Promise<T> {
    if (this.closed) return Promise.reject(new SvcError("unavailable", "the store is closed"));
    if (this.overdue > 0) return Promise.reject(slow());
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
    if (this.overdue > 0) return;
    await this.running;
    await this.finishing;
  }

  private async drain(): Promise<void> {
    // Everything that is read in this turn of the event loop joins the first batch; nothing is waited for.
    await new Promise(setImmediate);
    while (this.queue.length > 0) {
      const earlier = this.finishing;
      const { finished } = await this.begin(this.queue.splice(0, MAX_BATCH));
      this.finishing = finished;
      // One batch is synced while one is written; more would only make them smaller.
      await earlier;
    }
    this.running = undefined;
  }

  /** Resolves once the batch is written, or has failed; `finished` ends when its units were answered. */
  private async begin(batch: Waiting[]): Promise<{ finished: Promise<void> }> {
    const { until, end } = this.watch(batch);
    try {
      const written = await this.commit(batch, until);
      return { finished: this.finish(batch, written, end) };
    } catch (error) {
      refuse(batch, error);
      end();
      return { finished: Promise.resolve() };
    }
  }

  private async finish(batch: Waiting[], written: Written | undefined, end: () => void): Promise<void> {
    try {
      if (written !== undefined) await written.durable;
      for (const waiting of batch) settle(waiting);
    } catch (error) {
      refuse(batch, error);
    } finally {
      end();
    }
  }

  private watch(batch: readonly Waiting[]): { until: number; end: () => void } {
    // Counted from when the oldest unit came: time spent behind a slow batch is time waited, too.
    const until = batch[0]!.since + this.deadline_ms;
    let is_late = false;
    const timer = setTimeout(
      () => {
        is_late = true;
        this.overdue++;
        // Nobody knows what will become of the batch; those behind it were not begun, and will not be.
        for (const waiting of batch) waiting.reject(mayBeFound("the store does not answer in time"));
        for (const waiting of this.queue.splice(0)) waiting.reject(slow());
      },
      Math.max(0, until - performance.now()),
    );
    const end = () => {
      clearTimeout(timer);
      if (is_late) this.overdue--;
    };
    return { until, end };
  }
}

function refuse(batch: readonly Waiting[], error: unknown): void {
  const failure = error instanceof SvcError ? error : unavailable(error);
  for (const waiting of batch) waiting.reject(failure);
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
