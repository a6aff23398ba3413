/**
 * Runs sandbox jobs in threads of their own, with limits on time, memory and number: a policy from outside
 * may be as costly as its author likes, and the process that serves decisions does not notice.
 */
import { Worker } from "node:worker_threads";
import { invalid, ProblemsError, SvcError } from "../../kernel/errors.ts";
import type { Job, Message, Page } from "./job.ts";

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

export class SandboxHost {
  private running = 0;
  private readonly waiting: (() => void)[] = [];
  private readonly limits: JobLimits;

  constructor(limits: JobLimits = JOB_LIMITS) {
    this.limits = limits;
  }

  /** The report as JSON text. `history` is read only as fast as the thread asks for it. */
  async run(job: Job, history: AsyncIterable<Page & object>, signal: AbortSignal): Promise<string> {
    await this.enter();
    try {
      signal.throwIfAborted();
      return await new Run(job, history, this.limits).finish(signal);
    } finally {
      this.leave();
    }
  }

  private async enter(): Promise<void> {
    if (this.running < AT_ONCE) {
      this.running++;
      return;
    }
    if (this.waiting.length >= MOST_WAITING)
      throw new SvcError("too_many", "too many simulations are under way; try again in a while");
    await new Promise<void>((resolve) => this.waiting.push(resolve));
  }

  /** Whoever waits longest takes the place over. */
  private leave(): void {
    const next = this.waiting.shift();
    if (next === undefined) this.running--;
    else next();
  }
}

class Run {
  private readonly worker: Worker;
  private readonly history: AsyncIterator<Page & object>;
  private readonly limits: JobLimits;
  private timer: NodeJS.Timeout | undefined;
  private spent_ms = 0;
  private since = 0;
  private settle!: (report: string) => void;
  private fail!: (error: unknown) => void;

  constructor(job: Job, history: AsyncIterable<Page & object>, limits: JobLimits) {
    this.history = history[Symbol.asyncIterator]();
    this.limits = limits;
    this.worker = newWorker(job, limits.heap_mb);
  }

  async finish(signal: AbortSignal): Promise<string> {
    const stop = () => this.fail(new SvcError("unavailable", "the simulation was stopped"));
    signal.addEventListener("abort", stop, { once: true });
    try {
      return await new Promise<string>((resolve, reject) => {
        this.settle = resolve;
        this.fail = reject;
        this.listen();
        this.watch();
      });
    } finally {
      signal.removeEventListener("abort", stop);
      this.rest();
      await this.worker.terminate();
      await this.history.return?.();
    }
  }

  private listen(): void {
    const { worker } = this;
    worker.on("message", (message: Message) => void this.hear(message).catch(this.fail));
    worker.on("error", (error: NodeJS.ErrnoException) =>
      this.fail(error.code === "ERR_WORKER_OUT_OF_MEMORY" ? tooMuch("memory") : error),
    );
    worker.on("exit", () => this.fail(new Error("the sandbox thread ended without an answer")));
  }

  private async hear(message: Message): Promise<void> {
    switch (message.say) {
      case "next": {
        this.rest();
        const { done, value } = await this.history.next();
        this.watch();
        this.worker.postMessage((done ? null : value) satisfies Page);
        return;
      }
      case "done":
        return this.settle(message.report);
      case "failed": {
        const { code, problems } = message;
        return this.fail(
          problems === null ? new SvcError(code, message.message) : new ProblemsError(problems),
        );
      }
      case "broken":
        return this.fail(new Error(message.message));
    }
  }

  /** The thread works from here on. */
  private watch(): void {
    this.since = performance.now();
    const left = Math.min(this.limits.step_ms, this.limits.total_ms - this.spent_ms);
    this.timer = setTimeout(() => this.fail(tooMuch("time")), Math.max(0, left));
  }

  private rest(): void {
    clearTimeout(this.timer);
    this.spent_ms += performance.now() - this.since;
  }
}

function tooMuch(of: "time" | "memory"): SvcError {
  return invalid(
    `the sandbox stopped this: it took too much ${of}; make the policy simpler, or take a shorter period or one run`,
  );
}

/** Built code runs as it is; straight from the sources a thread loads the loader of TypeScript first. */
function newWorker(job: Job, heap_mb: number): Worker {
  const options = { workerData: job, resourceLimits: { maxOldGenerationSizeMb: heap_mb } };
  if (!import.meta.url.endsWith(".ts")) return new Worker(new URL("./worker.js", import.meta.url), options);
  const loader = JSON.stringify(import.meta.resolve("tsx/esm/api"));
  const file = JSON.stringify(new URL("./worker.ts", import.meta.url).href);
  const start = `import(${loader}).then((tsx) => { tsx.register(); return import(${file}); })`;
  return new Worker(start, { ...options, eval: true });
}
