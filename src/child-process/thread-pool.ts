/**
 * A pool of worker threads. A job goes to a free thread, or to a new one while there are fewer than `most`, or it
 * waits. When a thread dies, its current job fails and the next job starts another thread. Only busy threads keep the
 * process alive.
 */
import {
  parentPort,
  type ResourceLimits,
  type TransferListItem,
  Worker,
  type WorkerOptions,
  workerData,
} from "node:worker_threads";
import type { CauseCode } from "../kernel/error-codes.ts";
import { type ErrorCode, messageOf, ProblemsError, SvcError } from "../kernel/errors.ts";
import { withTimeout } from "../kernel/timeout.ts";
import { packageFile } from "./package-files.ts";

export interface ThreadPoolOptions {
  /** The name of the pool in error messages. */
  name: string;
  /** The module that each thread runs. It calls `serveThread`, which receives `setting`. */
  entry: URL;
  setting?: unknown;
  most: number;
  /** How long a thread waits for another job. A thread takes a tenth of a second to start. */
  idle_ms?: number;
  resourceLimits?: ResourceLimits;
  /**
   * For work that must not be stopped halfway: the pool asks a thread to end, and waits this long. A thread that has
   * not ended by then runs until the process exits. Without this option, the pool terminates threads at once.
   */
  patience_ms?: number;
}

interface JobOptions {
  transfer?: readonly TransferListItem[];
  /** Removes the job from the queue, or terminates its thread. The job fails with the signal's reason. */
  signal?: AbortSignal;
  /** Called when a thread starts the job, after the wait in the queue and the start of the thread. */
  begun?: () => void;
}

/** The work of a thread, one job after the other. */
export interface WorkerHandler<I> {
  work(input: I): unknown;
  /** The objects to transfer from the answer instead of copying them. */
  transfer?(answer: never): readonly TransferListItem[];
  end?(): void;
}

type WorkerTask = { work: unknown } | "end";
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

export class ThreadPool {
  private readonly options: ThreadPoolOptions;
  private readonly queue: Job[] = [];
  private readonly threads = new Set<Thread>();
  private readonly free: Thread[] = [];
  private isClosed = false;

  constructor(options: ThreadPoolOptions) {
    this.options = options;
  }

  /** The number of jobs that wait for a thread. */
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

  /** Ends all threads. Unfinished jobs fail. */
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
    worker.postMessage({ work: job.input } satisfies WorkerTask, job.transfer ?? []);
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
    // The slot becomes free and the job fails once the thread has exited.
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
      worker.postMessage("end" satisfies WorkerTask);
      const isEnded = await withTimeout(ended, patience_ms, () => false);
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

/** Runs inside the thread and does the jobs. Calls `make` for the first job, and again if it threw. */
export function serveThread<S, I>(make: (setting: S) => WorkerHandler<I>): void {
  const port = parentPort!;
  const say = (reply: Reply, transfer: readonly TransferListItem[] = []) => port.postMessage(reply, transfer);
  let duty: WorkerHandler<I> | undefined;
  const answer = async (order: WorkerTask): Promise<void> => {
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
  port.on("message", (order: WorkerTask) => {
    before = before.then(() => answer(order));
  });
  say("ready");
}

/** The parts of an error that cross threads: its message, and the properties that callers check. */
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

/** Starts a thread that runs the module. */
export function startWorker(entry: URL, options: WorkerOptions): Worker {
  if (!entry.pathname.endsWith(".ts")) return new Worker(entry, options);
  // From source (tests, development), a thread does not inherit the loader.
  const compiler = JSON.stringify(packageFile("scripts/thread-module.mjs").href);
  const program = `import(${compiler}).then(({ threadModule }) => import(threadModule(${JSON.stringify(entry.href)})))`;
  return new Worker(program, { ...options, eval: true });
}
