/**
 * Threads of this process that do jobs beside it. A job goes to a thread that is free, or to a new one while there
 * are fewer than `most`, or it waits. A thread that dies fails the job it has in hand, and the next job starts
 * another. They keep the process alive only while they have something to do.
 */
import {
  parentPort,
  type ResourceLimits,
  type TransferListItem,
  Worker,
  type WorkerOptions,
  workerData,
} from "node:worker_threads";
import { within } from "../kernel/deadline.ts";
import type { CauseCode } from "../kernel/error-codes.ts";
import { type ErrorCode, messageOf, ProblemsError, SvcError } from "../kernel/errors.ts";

export interface ThreadsOptions {
  /** What one of them is called where it fails. */
  name: string;
  /** The module that a thread runs; it calls `serveThread` with what `setting` becomes there. */
  entry: URL;
  setting?: unknown;
  most: number;
  /** Starting takes a tenth of a second, so a thread that did its job stays this long for the next. */
  idle_ms?: number;
  resourceLimits?: ResourceLimits;
  /**
   * For work that does not survive being stopped in the middle: a thread lets go of what it holds before it is ended,
   * and one that has not after this long is left to the end of the process. Without it a thread is just stopped.
   */
  patience_ms?: number;
}

interface JobOptions {
  transfer?: readonly TransferListItem[];
  /** Takes a job out of the queue, or ends the thread that has it in hand; the job fails with the signal's reason. */
  signal?: AbortSignal;
  /** When a thread sets to work: neither waiting nor the thread's start is the job's own time. */
  begun?: () => void;
}

/** What a thread does with each job, one after the other. */
export interface Duty<I> {
  work(input: I): unknown;
  /** What of an answer is handed over instead of copied. */
  transfer?(answer: never): readonly TransferListItem[];
  end?(): void;
}

type Order = { work: unknown } | "end";
type Reply = "ready" | "ended" | { answer: unknown } | { failure: Failure };

interface Job extends JobOptions {
  input: unknown;
  resolve(answer: unknown): void;
  reject(error: unknown): void;
}

interface Thread {
  readonly worker: Worker;
  job: Job | undefined;
  isReady: boolean;
  idle: NodeJS.Timeout | undefined;
  error: Error | undefined;
  ended: (() => void) | undefined;
}

const IDLE_MS = 30_000;

export class Threads {
  private readonly options: ThreadsOptions;
  private readonly queue: Job[] = [];
  private readonly threads = new Set<Thread>();
  private readonly free: Thread[] = [];
  private isClosed = false;

  constructor(options: ThreadsOptions) {
    this.options = options;
  }

  /** How many jobs wait for a thread. */
  get waiting(): number {
    return this.queue.length;
  }

  async ask<T>(input: unknown, asking: JobOptions = {}): Promise<T> {
    const { signal } = asking;
    signal?.throwIfAborted();
    if (this.isClosed) throw this.closed();
    let stop = () => {};
    try {
      return await new Promise<T>((resolve, reject) => {
        const job: Job = { ...asking, input, resolve: resolve as (answer: unknown) => void, reject };
        stop = () => this.stop(job);
        signal?.addEventListener("abort", stop, { once: true });
        this.queue.push(job);
        this.dispatch();
      });
    } finally {
      signal?.removeEventListener("abort", stop);
    }
  }

  /** Jobs that no thread has done by then fail. */
  async close(): Promise<void> {
    this.isClosed = true;
    for (const job of this.queue.splice(0)) job.reject(this.closed());
    await Promise.all([...this.threads].map((thread) => this.end(thread)));
  }

  private dispatch(): void {
    while (this.queue.length > 0) {
      const thread = this.free.pop() ?? (this.threads.size < this.options.most ? this.start() : undefined);
      if (thread === undefined) return;
      clearTimeout(thread.idle);
      thread.worker.ref();
      thread.job = this.queue.shift()!;
      if (thread.isReady) this.begin(thread);
    }
  }

  private begin({ worker, job }: Thread): void {
    if (job === undefined) return;
    job.begun?.();
    worker.postMessage({ work: job.input } satisfies Order, job.transfer ?? []);
  }

  private start(): Thread {
    const { entry, setting, resourceLimits } = this.options;
    const worker = startWorker(entry, { workerData: setting, ...(resourceLimits && { resourceLimits }) });
    const thread: Thread = {
      worker,
      job: undefined,
      isReady: false,
      idle: undefined,
      error: undefined,
      ended: undefined,
    };
    this.threads.add(thread);
    worker.on("message", (reply: Reply) => this.hear(thread, reply));
    worker.on("error", (error: Error) => {
      thread.error = error;
    });
    worker.on("exit", () => this.lose(thread));
    return thread;
  }

  private hear(thread: Thread, reply: Reply): void {
    if (reply === "ended") {
      thread.ended?.();
      return;
    }
    if (reply === "ready") {
      thread.isReady = true;
      this.begin(thread);
      return;
    }
    const { job } = thread;
    thread.job = undefined;
    if (this.threads.has(thread)) this.rest(thread);
    if ("answer" in reply) job?.resolve(reply.answer);
    else job?.reject(errorOf(reply.failure));
    this.dispatch();
  }

  private rest(thread: Thread): void {
    this.free.push(thread);
    thread.worker.unref();
    thread.idle = setTimeout(() => void this.end(thread), this.options.idle_ms ?? IDLE_MS).unref();
  }

  private stop(job: Job): void {
    // Its place is free, and the caller told, once the thread is really gone.
    for (const { job: inHand, worker } of this.threads) if (inHand === job) void worker.terminate();
    const at = this.queue.indexOf(job);
    if (at < 0) return;
    this.queue.splice(at, 1);
    job.reject(job.signal!.reason);
  }

  private lose(thread: Thread): void {
    this.forget(thread);
    const { job, error } = thread;
    thread.job = undefined;
    thread.ended?.();
    if (job?.signal?.aborted) job.reject(job.signal.reason);
    else job?.reject(error ?? this.gone());
    this.dispatch();
  }

  private forget(thread: Thread): void {
    clearTimeout(thread.idle);
    this.threads.delete(thread);
    const at = this.free.indexOf(thread);
    if (at >= 0) this.free.splice(at, 1);
  }

  private async end(thread: Thread): Promise<void> {
    const { worker } = thread;
    const { patience_ms } = this.options;
    this.forget(thread);
    if (patience_ms !== undefined) {
      const ended = new Promise<boolean>((resolve) => {
        thread.ended = () => resolve(true);
      });
      worker.ref();
      worker.postMessage("end" satisfies Order);
      const isEnded = await within(ended, patience_ms, () => false);
      worker.unref();
      if (!isEnded) return thread.job?.reject(this.closed());
    }
    await worker.terminate();
  }

  private closed(): SvcError {
    return new SvcError("unavailable", `${this.options.name} is closed`);
  }

  private gone(): SvcError {
    return new SvcError("unavailable", `a thread of ${this.options.name} ended without an answer`);
  }
}

/** In the thread: does the jobs. `make` is called for the first one, and again where it threw. */
export function serveThread<S, I>(make: (setting: S) => Duty<I>): void {
  const port = parentPort!;
  const say = (reply: Reply, transfer: readonly TransferListItem[] = []) => port.postMessage(reply, transfer);
  let duty: Duty<I> | undefined;
  const answer = async (order: Order): Promise<void> => {
    try {
      if (order === "end") {
        duty?.end?.();
        return say("ended");
      }
      duty ??= make(workerData as S);
      const answer = await duty.work(order.work as I);
      say({ answer }, duty.transfer?.(answer as never));
    } catch (error) {
      say({ failure: failureOf(error) });
    }
  };
  let before: Promise<void> = Promise.resolve();
  port.on("message", (order: Order) => {
    before = before.then(() => answer(order));
  });
  say("ready");
}

/** What of an error goes from one thread to another: its words, and what callers tell errors apart by. */
interface Failure {
  message: string;
  expected: ErrorCode | undefined;
  cause_code: CauseCode | undefined;
  problems: readonly string[] | undefined;
  code: unknown;
  errcode: unknown;
}

function failureOf(error: unknown): Failure {
  const { code, errcode } = error as { code?: unknown; errcode?: unknown };
  return {
    message: messageOf(error),
    expected: error instanceof SvcError ? error.code : undefined,
    cause_code: error instanceof SvcError ? error.cause_code : undefined,
    problems: error instanceof ProblemsError ? error.problems : undefined,
    code,
    errcode,
  };
}

function errorOf({ message, expected, cause_code, problems, code, errcode }: Failure): Error {
  if (problems !== undefined) return new ProblemsError(problems);
  if (expected !== undefined) return new SvcError(expected, message, { cause_code });
  return Object.assign(new Error(message), { code, errcode });
}

function startWorker(entry: URL, options: WorkerOptions): Worker {
  if (!entry.pathname.endsWith(".ts")) return new Worker(entry, options);
  // From source (tests, development) a thread does not inherit the loader.
  const loader = JSON.stringify(import.meta.resolve("tsx/esm/api"));
  const program = `import(${loader}).then((tsx) => { tsx.register(); return import(${JSON.stringify(entry.href)}); })`;
  return new Worker(program, { ...options, eval: true });
}
