/**
 * Runs sandbox jobs in separate threads with limits on time, memory and number. A policy from outside can be
 * arbitrarily expensive; it must not slow down the process that serves decisions.
 */

import { MessageChannel } from "node:worker_threads";
import { runInSlices } from "../../child-process/event-loop-slices.ts";
import { entryModule } from "../../child-process/package-files.ts";
import { ThreadPool } from "../../child-process/thread-pool.ts";
import { invalidError, SvcError } from "../../kernel/errors.ts";
import { asJson } from "../../kernel/json/json.ts";
import { jsonTextInSteps } from "../../kernel/json/json-text.ts";
import type { PastCalls, SandboxJob, SandboxJobMessage } from "./job.ts";
import type { ParseTask } from "./parse-tasks.ts";

interface JobLimits {
  /** Limit for one page of history, or for parsing the policy. */
  step_ms: number;
  /** Limit for all work of the thread, without waits for history. */
  total_ms: number;
  heap_mb: number;
}

export const JOB_LIMITS: JobLimits = { step_ms: 30_000, total_ms: 120_000, heap_mb: 1_024 };

/** Jobs that run at once. Further jobs wait, up to `MAX_WAITING`; after that they are rejected. */
const AT_ONCE = 2;
const MAX_WAITING_JOBS = 16;

export class SandboxHost {
  private readonly threads: ThreadPool;
  private readonly limits: JobLimits;

  constructor(limits: JobLimits = JOB_LIMITS) {
    this.limits = limits;
    this.threads = new ThreadPool({
      name: "the sandbox",
      entry: entryModule("operations/worker/worker"),
      most: AT_ONCE,
      resourceLimits: { maxOldGenerationSizeMb: limits.heap_mb },
    });
  }

  /** Returns the report as JSON text. `history` is read only as fast as the thread requests it. */
  async run(
    job: SandboxJob | ParseTask,
    history: AsyncIterable<PastCalls>,
    signal: AbortSignal,
  ): Promise<string> {
    if (signal.aborted) throw stopped();
    const text = await runInSlices(jsonTextInSteps(asJson(job)));
    if (signal.aborted) throw stopped();
    if (this.threads.waiting >= MAX_WAITING_JOBS)
      throw new SvcError("too_many", "too many simulations are in progress; try again later");
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
      return await this.threads.ask<string>({ job: text, wanted } satisfies SandboxJobMessage, {
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

/** Measures a thread's work, per step and in total. */
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
  return invalidError(
    `the sandbox stopped this job: it took too much ${of}; simplify the policy, or choose a shorter period or a single run`,
  );
}
