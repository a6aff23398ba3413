/**
 * Group commit: units that arrive during a batch form the next batch, without a timer and without added wait when idle.
 * The next batch runs and writes while the previous one syncs, and no caller gets a response before both are durable. A
 * batch that does not finish in time gets `unavailable`, and no new unit is accepted until it finishes, so that a hung
 * disk never blocks callers. Such a batch leaves nothing behind, or its callers learn that the commit outcome is
 * unknown.
 */
import type { UnitOfWork } from "../govern/port/store.ts";
import { SvcError } from "../kernel/errors.ts";
import { SERVICE_LIMITS } from "../kernel/limits.ts";
import type { PendingUnit } from "./batch.ts";
import { FairQueue } from "./fair-queue.ts";
import { IndeterminateCommitError, indeterminateCommit } from "./indeterminate-commit.ts";

export const MAX_BATCH = 512;

/** A batch that has run, while its own writes or the data it has read may not be durable yet. */
export interface WrittenBatch {
  /** Rejects if that data could not be made durable. */
  readonly durable: Promise<void>;
}

/**
 * Runs every unit of the batch and writes the result. Throws if nothing was written, or if the outcome is unknown.
 * Returns a pending sync, or undefined if everything is already durable. Callers wait until `until` (on the clock of
 * performance.now). The store calls `leave` right before it sends bytes that cannot be recalled. After `until`, `leave`
 * throws; a caller that times out after `leave` gets an error that its record may exist.
 */
type CommitBatch = (
  batch: readonly PendingUnit[],
  until: number,
  leave: () => void,
) => Promise<WrittenBatch | undefined>;

interface Waiting extends PendingUnit {
  readonly since: number;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

interface GroupCommitOptions {
  deadline_ms?: number | undefined;
  /**
   * Whether every batch, not just the first, first collects the units that this turn of the event loop has read. Pays
   * off if this thread's time dominates the cost of a batch. If a database dominates, it only keeps the database
   * waiting.
   */
  gathers?: boolean;
}

export class GroupCommit {
  private readonly queue = new FairQueue<Waiting>();
  private running: Promise<void> | undefined;
  /** Resolves when the last written batch is durable or lost. Never rejects. */
  private finishing: Promise<void> = Promise.resolve();
  /** The number of unfinished batches whose callers have timed out. */
  private overdue = 0;
  private closed = false;
  private readonly commit: CommitBatch;
  private readonly deadline_ms: number;
  private readonly gathers: boolean;

  constructor(commit: CommitBatch, { deadline_ms, gathers }: GroupCommitOptions = {}) {
    this.commit = commit;
    this.deadline_ms = deadline_ms ?? SERVICE_LIMITS.store_deadline_ms;
    this.gathers = gathers === true;
  }

  submit<T>(unit: UnitOfWork<T>): Promise<T> {
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

  /** The number of units that wait for a batch. */
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
    // Everything read in this turn of the event loop joins the batch, without further wait.
    await new Promise(setImmediate);
    while (this.queue.length > 0) {
      const earlier = this.finishing;
      const batch = this.nextBatch();
      if (batch.length === 0) continue;
      const { finished } = await this.begin(batch);
      this.finishing = finished;
      // While one batch is written, one is synced. More concurrency would only make batches smaller.
      await earlier;
      if (this.gathers) await new Promise(setImmediate);
    }
    this.running = undefined;
  }

  /**
   * Takes the next batch. If several shares together exceed a batch, refuses units that have waited long behind their
   * own share: in a batch they would leave no time for the others.
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

  /** Resolves once the batch is written or has failed. `finished` resolves when its units have their responses. */
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

  private async finish(batch: Waiting[], written: WrittenBatch | undefined, end: () => void): Promise<void> {
    try {
      if (written !== undefined) await written.durable;
      for (const waiting of batch) settle(waiting);
    } catch (error) {
      refuse(batch, indeterminateCommit(notDurable(error), error));
    } finally {
      end();
    }
  }

  private watch(batch: readonly Waiting[]): { until: number; leave: () => void; end: () => void } {
    // Counted from the arrival of the oldest unit, because the wait behind a slow batch counts, too.
    const until = batch[0]!.since + this.deadline_ms;
    let is_late = false;
    let has_left = false;
    const timer = setTimeout(
      () => {
        is_late = true;
        this.overdue++;
        refuse(
          batch,
          has_left ? indeterminateCommit("the store did not confirm the record in time") : slow(),
        );
        refuse(this.queue.take(this.queue.length), slow());
      },
      Math.max(0, until - performance.now()),
    );
    const leave = () => {
      // In a suspended process, this call can come before the timer fires.
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
    // A unit without writes cannot have left anything.
    const isHarmless = failure instanceof IndeterminateCommitError && !(outcome?.ok && outcome.wrote);
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
  const message = "ledger unavailable: the data that this request read could not be made durable in time";
  return new SvcError("unavailable", message, { cause });
}

function unavailable(cause: unknown): SvcError {
  return new SvcError("unavailable", `ledger unavailable: ${notDurable(cause)}`, { cause });
}

function notDurable(cause: unknown): string {
  const code = cause instanceof SvcError ? undefined : (cause as { code?: unknown } | null)?.code;
  return `the record could not be made durable${typeof code === "string" ? ` (${code})` : ""}`;
}
