/**
 * Group commit: units that arrive while a batch is under way form the next batch. There is no timer and no added
 * wait when idle. The next batch is run and written while the one before it is being synced, and no caller is answered
 * before both are durable. A batch that does not finish in time is answered `unavailable`, and until it does finish
 * nothing new is let in, so that a hung disk never holds callers. Such a batch leaves nothing behind, or whoever wrote
 * in it is told that it may be found.
 */
import { SvcError } from "../kernel/errors.ts";
import { LIMITS } from "../kernel/limits.ts";
import type { Unit } from "../port/store.ts";
import type { Pending } from "./batch.ts";
import { FairQueue } from "./fair-queue.ts";
import { MayBeFound, mayBeFound } from "./may-be-found.ts";

export const MAX_BATCH = 512;

/** A batch that has run, on what is perhaps not durable yet: its own writes, or only what it has seen. */
export interface Written {
  /** Rejects where that could not be made sure of. */
  readonly durable: Promise<void>;
}

/**
 * Runs every unit of the batch and writes the result, or throws and leaves nothing (or throws `MayBeFound`). What is
 * still to be synced is answered; what is durable already is not. At `until` (a time of performance.now) no caller waits
 * for it any more: `leave`, called right before the bytes go out that cannot be taken back, then throws, and whoever
 * is refused after it has passed is told that his record may be found.
 */
type CommitBatch = (
  batch: readonly Pending[],
  until: number,
  leave: () => void,
) => Promise<Written | undefined>;

interface Waiting extends Pending {
  readonly since: number;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

interface GroupCommitOptions {
  deadline_ms?: number | undefined;
  /**
   * Every batch takes in what the turn of the event loop has read, not the first alone. It pays where this thread's time
   * is what a batch costs; where that is a database's, it only keeps the database waiting.
   */
  gathers?: boolean;
}

export class GroupCommit {
  private readonly queue = new FairQueue<Waiting>();
  private running: Promise<void> | undefined;
  /** Ends when the batch that was written last is durable or lost; it never rejects. */
  private finishing: Promise<void> = Promise.resolve();
  /** Batches that callers were told not to wait for. */
  private overdue = 0;
  private closed = false;
  private readonly commit: CommitBatch;
  private readonly deadline_ms: number;
  private readonly gathers: boolean;

  constructor(commit: CommitBatch, { deadline_ms, gathers }: GroupCommitOptions = {}) {
    this.commit = commit;
    this.deadline_ms = deadline_ms ?? LIMITS.store_deadline_ms;
    this.gathers = gathers === true;
  }

  submit<T>(unit: Unit<T>): Promise<T> {
    if (this.closed) return Promise.reject(new SvcError("unavailable", "the store is closed"));
    if (this.overdue > 0) return Promise.reject(slow());
    return new Promise<T>((resolve, reject) => {
      this.queue.push(unit.share ?? "", {
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
    // Everything that is read in this turn of the event loop joins the batch; nothing is waited for.
    await new Promise(setImmediate);
    while (this.queue.length > 0) {
      const earlier = this.finishing;
      const batch = this.nextBatch();
      if (batch.length === 0) continue;
      const { finished } = await this.begin(batch);
      this.finishing = finished;
      // One batch is synced while one is written; more would only make them smaller.
      await earlier;
      if (this.gathers) await new Promise(setImmediate);
    }
    this.running = undefined;
  }

  /**
   * Where several shares have more than one batch holds, those who waited long behind their own kind are refused by
   * themselves: in a batch they would leave no time to the others in it.
   */
  private nextBatch(): Waiting[] {
    const taken = this.queue.take(MAX_BATCH);
    const fits = this.queue.length === 0 || taken.every(({ unit }) => unit.share === taken[0]!.unit.share);
    if (fits) return taken;
    const oldest = performance.now() - this.deadline_ms / 2;
    refuse(
      taken.filter(({ since }) => since < oldest),
      slow(),
    );
    return taken.filter(({ since }) => since >= oldest);
  }

  /** Resolves once the batch is written, or has failed; `finished` ends when its units were answered. */
  private async begin(batch: Waiting[]): Promise<{ finished: Promise<void> }> {
    const { until, leave, end } = this.watch(batch);
    try {
      const written = await this.commit(batch, until, leave);
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
      refuse(batch, mayBeFound(notDurable(error), error));
    } finally {
      end();
    }
  }

  private watch(batch: readonly Waiting[]): { until: number; leave: () => void; end: () => void } {
    // Counted from when the oldest unit came: time spent behind a slow batch is time waited, too.
    const until = batch[0]!.since + this.deadline_ms;
    let is_late = false;
    let has_left = false;
    const timer = setTimeout(
      () => {
        is_late = true;
        this.overdue++;
        refuse(batch, has_left ? mayBeFound("the store did not confirm the record in time") : slow());
        refuse(this.queue.take(this.queue.length), slow());
      },
      Math.max(0, until - performance.now()),
    );
    const leave = () => {
      // A process that was stopped meanwhile comes here before its timer does.
      if (is_late || performance.now() > until) throw slow();
      has_left = true;
    };
    const end = () => {
      clearTimeout(timer);
      if (is_late) this.overdue--;
    };
    return { until, leave, end };
  }
}

function refuse(batch: readonly Waiting[], error: unknown): void {
  const failure = error instanceof SvcError ? error : unavailable(error);
  for (const waiting of batch) {
    const { outcome } = waiting;
    // Nothing of a unit that wrote nothing can be found.
    const isHarmless = failure instanceof MayBeFound && !(outcome?.ok && outcome.wrote);
    waiting.reject(isHarmless ? unfounded(failure.cause) : failure);
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

function unfounded(cause: unknown): SvcError {
  const message = "ledger unavailable: what this request has found could not be made durable in time";
  return new SvcError("unavailable", message, { cause });
}

function unavailable(cause: unknown): SvcError {
  return new SvcError("unavailable", `ledger unavailable: ${notDurable(cause)}`, { cause });
}

function notDurable(cause: unknown): string {
  const code = cause instanceof SvcError ? undefined : (cause as { code?: unknown } | null)?.code;
  return `the record could not be made durable${typeof code === "string" ? ` (${code})` : ""}`;
}
