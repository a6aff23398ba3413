/** Runs periodic work in the background. Each task has its own interval and never overlaps itself. */
import { messageOf } from "../../kernel/errors.ts";
import { settleWithin } from "../../kernel/timeout.ts";
import type { ServiceLogger } from "../../telemetry/log.ts";

/** Never 0: even work that stops at once needs a moment. */
export const stopTimeLeft = (until: number): number => Math.max(250, until - performance.now());

const TELL_AGAIN_MS = 60_000;

export class BackgroundTasks {
  private readonly stopped = new AbortController();
  private readonly running = new Set<Promise<void>>();
  /** The next round of each task. */
  private readonly timers = new Set<NodeJS.Timeout>();
  private readonly log: ServiceLogger;

  constructor(log: ServiceLogger) {
    this.log = log;
  }

  get signal(): AbortSignal {
    return this.stopped.signal;
  }

  /** Runs the task at this interval. A failure is logged as a warning, and the next round still runs. */
  every(ms: number, name: string, task: () => Promise<unknown>): void {
    const troubles = new Troubles(name, this.log);
    const round = async () => {
      try {
        await task();
        troubles.over();
      } catch (error) {
        if (!this.stopped.signal.aborted) troubles.warn(messageOf(error));
      }
      this.later(start, ms);
    };
    const start = () => this.track(round());
    this.later(start, ms);
  }

  private later(start: () => void, ms: number): void {
    if (this.stopped.signal.aborted) return;
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      start();
    }, ms).unref();
    this.timers.add(timer);
  }

  /** Tracks a promise so that `stop` can wait for it. */
  track(work: Promise<void>): void {
    this.running.add(work);
    void work.finally(() => this.running.delete(work));
  }

  /** Stops all tasks and waits for running ones, but only for `within_ms`. */
  async stop(within_ms: number): Promise<void> {
    this.stopped.abort();
    for (const timer of this.timers) clearTimeout(timer);
    await settleWithin(Promise.allSettled([...this.running]), within_ms);
    if (this.running.size > 0)
      this.log.warn("background work did not end before the stop", { left: this.running.size });
  }
}

/**
 * Logs a lasting failure without flooding the log: at its start, when the cause changes, every minute, and at its end.
 */
class Troubles {
  private readonly name: string;
  private readonly log: ServiceLogger;
  private last: { error: string; told_at: number } | undefined;

  constructor(name: string, log: ServiceLogger) {
    this.name = name;
    this.log = log;
  }

  warn(error: string): void {
    const now = performance.now();
    if (this.last?.error === error && now - this.last.told_at < TELL_AGAIN_MS) return;
    this.last = { error, told_at: now };
    this.log.warn(`${this.name} failed`, { error });
  }

  over(): void {
    if (this.last === undefined) return;
    this.last = undefined;
    this.log.info(`${this.name} works again`);
  }
}
