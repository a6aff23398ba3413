/**
 * A thread that does a store's slow SQLite work: checkpoints, and syncs that SQLite makes itself. It is
 * started when first needed and keeps the process alive only while it has something to do.
 */
import { parentPort, type Worker, workerData } from "node:worker_threads";
import { within } from "../../kernel/deadline.ts";
import { messageOf, SvcError } from "../../kernel/errors.ts";
import { startThread } from "../../process/thread.ts";

/** What a store's thread can do, by name; `end` lets go of everything. */
export type Jobs = Record<string, (input: never) => unknown> & { end(): void };

export interface Helper {
  ask<T>(job: string, input: unknown): Promise<T>;
  close(): Promise<void>;
}

interface Request {
  id: number;
  job: string;
  input: unknown;
}

interface Reply {
  id: number;
  value?: unknown;
  failure?: { code: string | undefined; errcode: number | undefined; message: string };
}

/** In the thread: answers jobs one after the other. `make` is given what the store passed to `ThreadHelper`. */
export function serveJobs<S>(make: (setting: S) => Jobs): void {
  let jobs: Jobs | undefined;
  parentPort!.on("message", ({ id, job, input }: Request) => {
    const reply: Reply = { id };
    try {
      if (job === "end" && jobs === undefined) return void parentPort!.postMessage(reply);
      jobs ??= make(workerData as S);
      reply.value = jobs[job]!(input as never);
    } catch (error) {
      const { code, errcode } = error as { code?: string; errcode?: number };
      reply.failure = { code, errcode, message: messageOf(error) };
    }
    parentPort!.postMessage(reply);
  });
}

/** A thread that has had nothing to do for this long ends, and gives its memory back. */
const IDLE_MS = 5_000;
/** How long a thread may take to finish what it is doing when it is to end. */
const PATIENCE_MS = 3_000;
/** Its work is short bursts over strings: a small nursery costs it little and saves what it holds. */
const YOUNG_MB = 8;

export class ThreadHelper implements Helper {
  private readonly entry: URL;
  private readonly setting: unknown;
  private readonly waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  private worker: Worker | undefined;
  private idle: NodeJS.Timeout | undefined;
  private lastId = 0;
  private isClosed = false;

  constructor(entry: URL, setting: unknown) {
    this.entry = entry;
    this.setting = setting;
  }

  ask<T>(job: string, input: unknown): Promise<T> {
    const id = ++this.lastId;
    return new Promise<T>((resolve, reject) => {
      this.waiting.set(id, { resolve: resolve as (value: unknown) => void, reject });
      this.worker ??= this.start();
      // Whoever waits for an answer must get it before the process may end.
      this.worker.ref();
      clearTimeout(this.idle);
      this.worker.postMessage({ id, job, input } satisfies Request);
    });
  }

  async close(): Promise<void> {
    this.isClosed = true;
    await this.end();
    this.fail(new SvcError("unavailable", "the store is closed"));
  }

  private start(): Worker {
    const worker = startThread(this.entry, {
      workerData: this.setting,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    });
    worker.on("message", ({ id, value, failure }: Reply) => {
      const waiting = this.waiting.get(id);
      this.waiting.delete(id);
      if (this.waiting.size === 0) {
        worker.unref();
        if (!this.isClosed) this.idle = setTimeout(() => void this.end(), IDLE_MS).unref();
      }
      if (failure === undefined) waiting?.resolve(value);
      else
        waiting?.reject(
          Object.assign(new Error(failure.message), { code: failure.code, errcode: failure.errcode }),
        );
    });
    // A thread that dies takes its jobs with it; the next job starts another.
    worker.on("error", (error) => this.lose(worker, error));
    worker.on("exit", () => this.lose(worker, new Error("the helper thread ended")));
    return worker;
  }

  /**
   * The thread is only ended between jobs, with its databases closed: the addon does not survive being
   * stopped in the middle of a call. One that hangs is left to the end of the process.
   */
  private async end(): Promise<void> {
    const { worker } = this;
    clearTimeout(this.idle);
    if (worker === undefined) return;
    const ended = this.ask("end", undefined).then(
      () => true,
      () => false,
    );
    const id = this.lastId;
    this.worker = undefined;
    const isEnded = await within(ended, PATIENCE_MS, () => false);
    this.waiting.delete(id);
    worker.unref();
    if (isEnded) await worker.terminate();
  }

  private lose(worker: Worker, error: Error): void {
    if (this.worker !== worker) return;
    this.worker = undefined;
    this.fail(error);
  }

  private fail(error: Error): void {
    const waiting = [...this.waiting.values()];
    this.waiting.clear();
    for (const { reject } of waiting) reject(error);
  }
}
