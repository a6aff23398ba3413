/**
 * A small connection pool. A waiting caller gets the first free connection. Additional connections are optional, so a
 * server that allows no more of them causes waiting, not errors.
 */
import { SvcError } from "../../../kernel/errors.ts";
import { isConnectionLoss, notInTime } from "./failures.ts";
import { PgSession } from "./session.ts";
import type { PgSettings } from "./settings.ts";
import { timeLimit } from "./time-limit.ts";

interface PoolOptions {
  url: string;
  settings: PgSettings;
  /** The largest number of connections, the timeout to open one, and the idle time after which one is closed. */
  connections: number;
  connect_ms: number;
  idle_ms: number;
}

interface Waiter {
  resolve(session: PgSession): void;
  reject(error: unknown): void;
}

export class SessionPool {
  private readonly options: PoolOptions;
  private readonly idle = new Map<PgSession, NodeJS.Timeout>();
  private readonly waiting: Waiter[] = [];
  private readonly working = new Set<Promise<unknown>>();
  /** Open connections, and those that are being opened. */
  private count = 0;
  private opening = 0;
  private closed = false;

  constructor(options: PoolOptions) {
    this.options = options;
  }

  /** Runs work that can be repeated: if an idle connection has broken, the work runs again on another one. */
  use<T>(signal: AbortSignal, work: (session: PgSession) => Promise<T>): Promise<T> {
    const result = this.attempt(signal, work);
    this.working.add(result);
    const done = (): void => void this.working.delete(result);
    result.then(done, done);
    return result;
  }

  /** Closes the pool after the work in progress. */
  async close(): Promise<void> {
    this.closed = true;
    for (const { reject } of this.waiting.splice(0))
      reject(new SvcError("unavailable", "the store is closed"));
    await Promise.allSettled(this.working);
    await Promise.all([...this.idle.keys()].map((session) => this.discard(session)));
  }

  private async attempt<T>(signal: AbortSignal, work: (session: PgSession) => Promise<T>): Promise<T> {
    for (;;) {
      const kept = this.takeIdle();
      const session = kept ?? (await this.wait(signal));
      try {
        const value = await session.until(signal, () => work(session));
        this.give(session);
        return value;
      } catch (error) {
        this.lose(session);
        if (kept === undefined || signal.aborted || !isConnectionLoss(error)) throw error;
      }
    }
  }

  private takeIdle(): PgSession | undefined {
    for (const [session, timer] of [...this.idle].reverse()) {
      clearTimeout(timer);
      this.idle.delete(session);
      if (!session.dead) return session;
      this.count--;
    }
    return undefined;
  }

  private wait(signal: AbortSignal): Promise<PgSession> {
    return new Promise((resolve, reject) => {
      const waiter: Waiter = { resolve, reject };
      const leave = (): void => {
        const at = this.waiting.indexOf(waiter);
        if (at !== -1) this.waiting.splice(at, 1);
        reject(notInTime());
      };
      signal.addEventListener("abort", leave, { once: true });
      this.waiting.push(waiter);
      this.grow();
    });
  }

  private grow(): void {
    if (this.closed || this.waiting.length <= this.opening || this.count >= this.options.connections) return;
    this.count++;
    this.opening++;
    void this.open(this.count === 1).then(
      (session) => {
        this.opening--;
        this.give(session);
      },
      (error: unknown) => {
        this.opening--;
        this.count--;
        if (this.count === 0) for (const { reject } of this.waiting.splice(0)) reject(error);
      },
    );
  }

  /** Only the first connection waits for a free slot on the server. The others are optional. */
  private async open(is_only: boolean): Promise<PgSession> {
    const { url, settings, connect_ms } = this.options;
    const limit = timeLimit(connect_ms);
    try {
      const options = { signal: limit.signal, settings };
      return await (is_only ? PgSession.openPatiently(url, options) : PgSession.open(url, options));
    } finally {
      limit.clear();
    }
  }

  private give(session: PgSession): void {
    const waiter = session.dead ? undefined : this.waiting.shift();
    if (waiter !== undefined) waiter.resolve(session);
    else if (session.dead || this.closed) this.lose(session);
    else this.rest(session);
  }

  private rest(session: PgSession): void {
    const timer = setTimeout(() => {
      // Keeps the last connection, because another process could take its slot on the server.
      if (this.count > 1) void this.discard(session);
      else this.rest(session);
    }, this.options.idle_ms).unref();
    this.idle.set(session, timer);
  }

  private async discard(session: PgSession): Promise<void> {
    clearTimeout(this.idle.get(session));
    this.idle.delete(session);
    this.count--;
    await session.end();
  }

  private lose(session: PgSession): void {
    session.abandon();
    this.count--;
    this.grow();
  }
}
