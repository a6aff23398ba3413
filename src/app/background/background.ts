/** Work that goes on beside the requests: each task at its own pace, never two of one kind at once. */
import { atMost } from "../../kernel/deadline.ts";
import { messageOf } from "../../kernel/errors.ts";
import type { Logger } from "../../telemetry/log.ts";

/** Never nothing: what ends at once when it is told to is still waited for. */
export const timeLeft = (until: number): number => Math.max(250, until - performance.now());

const TELL_AGAIN_MS = 60_000;

export class Background {
  private readonly stopped = new AbortController();
  private readonly running = new Set<Promise<void>>();
  /** The next round of each task. */
  private readonly timers = new Set<NodeJS.Timeout>();
  private readonly log: Logger;

  constructor(log: Logger) {
    this.log = log;
  }

  get signal(): AbortSignal {
    return this.stopped.signal;
  }

  /** Runs the task every so often. A failure is a warning and the next round comes all the same. */
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

  /** Keeps a promise in sight until it is done, so that stopping can wait for it. */
  track(work: Promise<void>): void {
    this.running.add(work);
    void work.finally(() => this.running.delete(work));
  }

  /** Ends what can be ended, and waits for the rest for a while: nothing here may hold a stop up. */
  async stop(within_ms: number): Promise<void> {
    this.stopped.abort();
    for (const timer of this.timers) clearTimeout(timer);
    await atMost(Promise.allSettled([...this.running]), within_ms);
    if (this.running.size > 0)
      this.log.warn("background work did not end before the stop", { left: this.running.size });
  }
}

/** An outage of hours is not told every second: when it begins, when its cause changes, each minute, and when it ends. */
class Troubles {
  private readonly name: string;
  private readonly log: Logger;
  private last: { error: string; told_at: number } | undefined;

  constructor(name: string, log: Logger) {
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
