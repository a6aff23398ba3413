/**
 * Verifies chunks on all cores, or in this thread if that is faster, and joins them in order. The number of chunks in
 * memory is proportional to the number of threads.
 */
import { availableParallelism } from "node:os";
import { setImmediate as nextTurn } from "node:timers/promises";
import { entryModule } from "../../child-process/package-files.ts";
import { ThreadPool } from "../../child-process/thread-pool.ts";
import { type CheckOptions, type ChunkSummary, ChunkVerifier } from "./chunk.ts";
import type { LedgerJoin } from "./join.ts";
import { LineFile, type LineRegion } from "./line-file.ts";

export type CheckTask =
  | { kind: "range"; region: LineRegion; from: number; to: number }
  | { kind: "lines"; bytes: ArrayBuffer; length: number };

export interface CheckSetup {
  /** File for tasks that are byte ranges; null if tasks contain lines. */
  path: string | null;
  options: CheckOptions;
}

/** Verifies one task or several at once. */
interface Checkers {
  readonly width: number;
  check(task: CheckTask): Promise<ChunkSummary>;
  close(): Promise<void>;
}

/** Uses `threads` threads, or this thread if that is 0. */
export function openCheckers(setup: CheckSetup, threads: number): Checkers {
  return threads > 0 ? new CheckPool(setup, threads) : new InlineChecker(setup);
}

/** Number of threads for parallel work: one per core, or 0 on a single core. */
export function allCores(): number {
  const cores = availableParallelism();
  return cores > 1 ? cores : 0;
}

/** Distributes tasks to the checkers and joins the results in order. Stops at the first problem. */
export async function checkAndJoin(
  tasks: AsyncIterable<CheckTask> | Iterable<CheckTask>,
  checkers: Checkers,
  join: LedgerJoin,
): Promise<void> {
  const pending: Promise<ChunkSummary>[] = [];
  for await (const task of tasks) {
    const work = checkers.check(task);
    // Failures after a bad chunk are ignored.
    work.catch(() => undefined);
    pending.push(work);
    if (pending.length >= 2 * checkers.width && !join.add(await pending.shift()!)) return;
  }
  for (const work of pending) if (!join.add(await work)) return;
}

/** Verifies tasks in the current thread. Worker threads use it too. */
export class InlineChecker implements Checkers {
  readonly width = 1;
  private readonly checker: ChunkVerifier;
  private readonly file: LineFile | null;

  constructor(setup: CheckSetup) {
    this.checker = new ChunkVerifier(setup.options);
    this.file = setup.path === null ? null : new LineFile(setup.path);
  }

  async check(task: CheckTask): Promise<ChunkSummary> {
    // Yield, so that a server that verifies its own ledger keeps responding.
    await nextTurn();
    if (task.kind === "range") return this.checker.check(this.file!.lines(task.region, task.from, task.to));
    return this.checker.check({ bytes: Buffer.from(task.bytes), length: task.length, is_end: false });
  }

  async close(): Promise<void> {
    this.file?.close();
  }
}

class CheckPool implements Checkers {
  readonly width: number;
  private readonly threads: ThreadPool;

  constructor(setup: CheckSetup, threads: number) {
    this.width = threads;
    this.threads = new ThreadPool({
      name: "the ledger's check",
      entry: entryModule("evidence/chain/worker"),
      setting: setup,
      most: threads,
    });
  }

  check(task: CheckTask): Promise<ChunkSummary> {
    return this.threads.ask(task, { transfer: task.kind === "lines" ? [task.bytes] : [] });
  }

  close(): Promise<void> {
    return this.threads.close();
  }
}
