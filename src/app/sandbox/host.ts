/**
 * Runs sandbox jobs in threads of their own, with limits on time, memory and number: a policy from outside
 * may be as costly as its author likes, and the process that serves decisions does not notice.
 */
import type { Worker } from "node:worker_threads";
import { invalid, ProblemsError, SvcError } from "../../kernel/errors.ts";
import { besideModule, startThread } from "../../process/thread.ts";
import type { Job, Message, Order, Page } from "./job.ts";
import type { Reading } from "./readings.ts";

export interface JobLimits {
  /** For one page of history, or for reading the policy. */
  step_ms: number;
  /** For all that the thread does, waiting for history left out. */
  total_ms: number;
  heap_mb: number;
}

export const JOB_LIMITS: JobLimits = { step_ms: 30_000, total_ms: 120_000, heap_mb: 1_024 };

/** Beyond these a job waits, and beyond that it is refused. */
const AT_ONCE = 2;
const MOST_WAITING = 16;
/** A thread costs a tenth of a second to start, so one that did its job stays for the next a while. */
const IDLE_MS = 30_000;

export class SandboxHost {
  private running = 0;
  private readonly waiting: (() => void)[] = [];
  private readonly idle = new Set<Worker>();
  private readonly limits: JobLimits;

  constructor(limits: JobLimits = JOB_LIMITS) {
    this.limits = limits;
  }

  /** The report as JSON text. `history` is read only as fast as the thread asks for it. */
  async run(job: Job | Reading, history: AsyncIterable<Page>, signal: AbortSignal): Promise<string> {
    await this.enter(signal);
    try {
      const worker = await this.takeWorker();
      const run = new Run(worker, history, this.limits);
      try {
        return await run.finish(job, signal);
      } finally {
        // One that was stopped in the middle may be busy for ever.
        if (run.ended) this.keep(worker);
        else await worker.terminate();
      }
    } finally {
      this.leave();
    }
  }

  private async enter(signal: AbortSignal): Promise<void> {
    if (signal.aborted) throw stopped();
    if (this.running < AT_ONCE) {
      this.running++;
      return;
    }
    if (this.waiting.length >= MOST_WAITING)
      throw new SvcError("too_many", "too many simulations are under way; try again in a while");
    await new Promise<void>((resolve, reject) => {
      const leave = () => {
        this.waiting.splice(this.waiting.indexOf(enter), 1);
        reject(stopped());
      };
      const enter = () => {
        signal.removeEventListener("abort", leave);
        resolve();
      };
      this.waiting.push(enter);
      signal.addEventListener("abort", leave, { once: true });
    });
  }

  /** Whoever waits longest takes the place over. */
  private leave(): void {
    const next = this.waiting.shift();
    if (next === undefined) this.running--;
    else next();
  }

  private async takeWorker(): Promise<Worker> {
    for (const worker of this.idle) {
      this.idle.delete(worker);
      worker.ref();
      return worker;
    }
    const resourceLimits = { maxOldGenerationSizeMb: this.limits.heap_mb };
    const worker = startThread(besideModule(import.meta.url, "worker"), { resourceLimits });
    // What a thread that nobody uses, or that is being ended, still throws concerns nobody.
    worker.on("error", () => {}).on("exit", () => this.idle.delete(worker));
    // Starting is not the job's fault: its time does not count.
    await new Promise((resolve, reject) => {
      worker.once("message", resolve).once("error", (error) => reject(told(error)));
      worker.once("exit", () => reject(new Error("the sandbox thread did not start")));
    });
    return worker;
  }

  private keep(worker: Worker): void {
    this.idle.add(worker);
    worker.unref();
    const letGo = () => {
      if (this.idle.delete(worker)) void worker.terminate();
    };
    setTimeout(letGo, IDLE_MS).unref();
  }
}

class Run {
  /** Whether the thread has given its answer and waits for another job. */
  ended = false;
  private readonly worker: Worker;
  private readonly history: AsyncIterator<Page>;
  private readonly limits: JobLimits;
  private timer: NodeJS.Timeout | undefined;
  private spent_ms = 0;
  private since = 0;
  private settle!: (report: string) => void;
  private fail!: (error: unknown) => void;

  constructor(worker: Worker, history: AsyncIterable<Page>, limits: JobLimits) {
    this.worker = worker;
    this.history = history[Symbol.asyncIterator]();
    this.limits = limits;
  }

  async finish(job: Job | Reading, signal: AbortSignal): Promise<string> {
    const { worker } = this;
    const stop = () => this.fail(stopped());
    const hear = (message: Message) => void this.hear(message).catch(this.fail);
    const broke = (error: Error) => this.fail(told(error));
    const left = () => this.fail(new Error("the sandbox thread ended without an answer"));
    signal.addEventListener("abort", stop, { once: true });
    worker.on("message", hear).on("error", broke).on("exit", left);
    try {
      return await new Promise<string>((resolve, reject) => {
        this.settle = resolve;
        this.fail = reject;
        if (signal.aborted) stop();
        else this.tell({ job });
      });
    } finally {
      signal.removeEventListener("abort", stop);
      worker.off("message", hear).off("error", broke).off("exit", left);
      this.rest();
      await this.history.return?.();
    }
  }

  private async hear(message: Message): Promise<void> {
    this.rest();
    if (message.say === "ready") return;
    if (message.say === "next") {
      const { done, value } = await this.history.next();
      return this.tell({ page: done ? null : value });
    }
    this.ended = true;
    if (message.say === "done") this.settle(message.report);
    else if (message.say === "broken") this.fail(new Error(message.message));
    else if (message.problems === null) this.fail(new SvcError(message.code, message.message));
    else this.fail(new ProblemsError(message.problems));
  }

  /** The thread works from here on. */
  private tell(order: Order): void {
    this.since = performance.now();
    const left = Math.min(this.limits.step_ms, this.limits.total_ms - this.spent_ms);
    this.timer = setTimeout(() => this.fail(tooMuch("time")), Math.max(0, left));
    this.worker.postMessage(order);
  }

  private rest(): void {
    clearTimeout(this.timer);
    this.spent_ms += performance.now() - this.since;
  }
}

function stopped(): SvcError {
  return new SvcError("unavailable", "the simulation was stopped");
}

/** What a thread threw, as its user is told of it. */
function told(error: NodeJS.ErrnoException): Error {
  return error.code === "ERR_WORKER_OUT_OF_MEMORY" ? tooMuch("memory") : error;
}

function tooMuch(of: "time" | "memory"): SvcError {
  return invalid(
    `the sandbox stopped this: it took too much ${of}; make the policy simpler, or take a shorter period or one run`,
  );
}
