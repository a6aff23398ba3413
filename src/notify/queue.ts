/**
 * Delivery queue of one channel: in order, one at a time, three retries, limited size. A dead channel fills only its
 * own queue, and its failures are only logged.
 */
import type { RuntimeEnv } from "../kernel/env.ts";
import { messageOf } from "../kernel/errors.ts";
import type { ServiceLogger } from "../telemetry/log.ts";
import type { ChannelDelivery } from "./channel.ts";
import { DeliveryError } from "./deliver.ts";

interface DeliveryJob<D> {
  readonly event: string;
  /** Renders on the job's turn, so that a waiting job stores the event and not its rendering. */
  render(): readonly D[];
}

export interface QueueStats {
  readonly queued: number;
  readonly ok: number;
  readonly failed: number;
  readonly dropped: number;
  readonly last_ok_ms: number | null;
  readonly last_error: string | null;
}

interface QueueParts<D> {
  readonly env: Pick<RuntimeEnv, "now" | "elapsed" | "random" | "sleep">;
  readonly log: ServiceLogger;
  send(delivery: D, signal: AbortSignal): Promise<void>;
}

const MAX_QUEUED = 1_000;
const RETRIES = 3;
const BACKOFF_MS = 500;
const REPEAT_LOG_MS = 60_000;

export class ChannelQueue<D = ChannelDelivery> {
  private readonly parts: QueueParts<D>;
  private readonly jobs: DeliveryJob<D>[] = [];
  private readonly stop = new AbortController();
  private running: Promise<void> | null = null;
  private readonly counts = { ok: 0, failed: 0, dropped: 0 };
  private lastOk: number | null = null;
  private lastError: string | null = null;
  private lastDropLogged = Number.NEGATIVE_INFINITY;

  constructor(parts: QueueParts<D>) {
    this.parts = parts;
  }

  push(job: DeliveryJob<D>): void {
    if (this.jobs.length >= MAX_QUEUED) {
      // Drop the oldest, which is the least useful by now.
      this.jobs.shift();
      this.counts.dropped++;
      this.tellDropped();
    }
    this.jobs.push(job);
    this.running ??= this.run();
  }

  stats(): QueueStats {
    return {
      queued: this.jobs.length + (this.running === null ? 0 : 1),
      ...this.counts,
      last_ok_ms: this.lastOk,
      last_error: this.lastError,
    };
  }

  /** Resolves when the queue is empty. */
  idle(): Promise<void> {
    return this.running ?? Promise.resolve();
  }

  /** Aborts the delivery in progress and drops the waiting ones. Returns the number of unsent messages. */
  abandon(): number {
    const left = this.stats().queued;
    this.jobs.length = 0;
    this.stop.abort();
    return left;
  }

  /** Records the result of a message sent outside the queue. */
  note(error: string | null): void {
    this.lastError = error;
    if (error === null) this.lastOk = this.parts.env.now();
  }

  private async run(): Promise<void> {
    // Let the caller's turn end first: even rendering must not delay a decision.
    await Promise.resolve();
    for (let job = this.jobs.shift(); job !== undefined; job = this.jobs.shift()) {
      try {
        for (const delivery of job.render()) await this.attempt(delivery);
        this.counts.ok++;
        this.note(null);
      } catch (error) {
        this.counts.failed++;
        this.note(messageOf(error));
        if (!this.stop.signal.aborted) {
          this.parts.log.warn("notification not delivered", { event: job.event, problem: messageOf(error) });
        }
      }
    }
    this.running = null;
  }

  private async attempt(delivery: D): Promise<void> {
    for (let retries = 0; ; retries++) {
      this.stop.signal.throwIfAborted();
      try {
        return await this.parts.send(delivery, this.stop.signal);
      } catch (error) {
        const again = error instanceof DeliveryError && error.retry;
        if (!again || retries >= RETRIES || this.stop.signal.aborted) throw error;
        await this.parts.env.sleep(this.backoff(retries, error.after_ms), this.stop.signal);
      }
    }
  }

  /** Half a second, tripled each time, with 20 % jitter so that processes do not retry together. */
  private backoff(retries: number, asked: number | null): number {
    const ms = BACKOFF_MS * 3 ** retries * (0.8 + 0.4 * this.parts.env.random());
    return Math.round(Math.max(ms, asked ?? 0));
  }

  private tellDropped(): void {
    const now = this.parts.env.elapsed();
    if (now - this.lastDropLogged < REPEAT_LOG_MS) return;
    this.lastDropLogged = now;
    this.parts.log.warn("notification queue is full, oldest dropped", { dropped: this.counts.dropped });
  }
}
