/**
 * Runs sandbox jobs in threads of their own, with limits on time, memory and number: a policy from outside
 * may be as costly as its author likes, and the process that serves decisions does not notice.
 */
import { MessageChannel } from "node:worker_threads";
import { invalid, SvcError } from "../../kernel/errors.ts";
import { entryModule } from "../../process/package.ts";
import { Threads } from "../../process/threads.ts";
import type { Job, Order, PastCalls } from "./job.ts";
import type { Reading } from "./readings.ts";

interface JobLimits {
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
  private readonly threads: Threads;
  private readonly limits: JobLimits;

  constructor(limits: JobLimits = JOB_LIMITS) {
    this.limits = limits;
    this.threads = new Threads({
      name: "the sandbox",
      entry: entryModule("app/sandbox/worker"),
      most: AT_ONCE,
      resourceLimits: { maxOldGenerationSizeMb: limits.heap_mb },
    });
  }

  /** The report as JSON text. `history` is read only as fast as the thread asks for it. */
  async run(job: Job | Reading, history: AsyncIterable<PastCalls>, signal: AbortSignal): Promise<string> {
    if (signal.aborted) throw stopped();
    if (this.threads.waiting >= MOST_WAITING)
      throw new SvcError("too_many", "too many simulations are under way; try again in a while");
    const pages = history[Symbol.asyncIterator]();
    const end = new AbortController();
    const leave = () => end.abort(stopped());
    const watch = new Stopwatch(this.limits, () => end.abort(tooMuch("time")));
    const { port1: port, port2: wanted } = new MessageChannel();
    const give = async () => {
      watch.rest();
      const { done, value } = await pages.next();
      watch.go();
      port.postMessage(done ? null : value);
    };
    port.on("message", () => void give().catch((error) => end.abort(error)));
    signal.addEventListener("abort", leave, { once: true });
    try {
      return await this.threads.ask<string>({ job, wanted } satisfies Order, {
        transfer: [wanted],
        signal: end.signal,
        begun: () => watch.go(),
      });
    } catch (error) {
      throw (error as NodeJS.ErrnoException).code === "ERR_WORKER_OUT_OF_MEMORY" ? tooMuch("memory") : error;
    } finally {
      signal.removeEventListener("abort", leave);
      watch.rest();
      port.close();
      await pages.return?.();
    }
  }
}

/** The time that a thread works, at a stretch and in all. */
class Stopwatch {
  private readonly limits: JobLimits;
  private readonly late: () => void;
  private timer: NodeJS.Timeout | undefined;
  private since: number | undefined;
  private spent_ms = 0;

  constructor(limits: JobLimits, late: () => void) {
    this.limits = limits;
    this.late = late;
  }

  go(): void {
    this.since = performance.now();
    const left = Math.min(this.limits.step_ms, this.limits.total_ms - this.spent_ms);
    this.timer = setTimeout(this.late, Math.max(0, left));
  }

  rest(): void {
    clearTimeout(this.timer);
    if (this.since !== undefined) this.spent_ms += performance.now() - this.since;
    this.since = undefined;
  }
}

function stopped(): SvcError {
  return new SvcError("unavailable", "the simulation was stopped");
}

function tooMuch(of: "time" | "memory"): SvcError {
  return invalid(
    `the sandbox stopped this: it took too much ${of}; make the policy simpler, or take a shorter period or one run`,
  );
}
