/**
 * Checking stretches on all cores, or here where that is quicker, and joining them in their order. No more
 * is held at a time than the cores have in hand.
 */
import { availableParallelism } from "node:os";
import { setImmediate as nextTurn } from "node:timers/promises";
import { entryModule } from "../../process/package.ts";
import { Threads } from "../../process/threads.ts";
import { type CheckOptions, StretchChecker, type StretchFacts } from "./chunk.ts";
import type { LedgerJoin } from "./join.ts";
import { LineFile, type Region } from "./region.ts";

export type CheckTask =
  | { kind: "range"; region: Region; from: number; to: number }
  | { kind: "lines"; bytes: ArrayBuffer; length: number };

export interface CheckSetup {
  /** The file whose ranges are asked for; null where lines are sent. */
  path: string | null;
  options: CheckOptions;
}

/** Checks tasks one at a time or several at once. */
interface Checkers {
  readonly width: number;
  check(task: CheckTask): Promise<StretchFacts>;
  close(): Promise<void>;
}

/** As many threads as asked for; none means that the work is done here. */
export function openCheckers(setup: CheckSetup, threads: number): Checkers {
  return threads > 0 ? new CheckPool(setup, threads) : new CheckHere(setup);
}

/** Threads for work that is worth sharing out: one for each core, or none where there is only one core. */
export function allCores(): number {
  const cores = availableParallelism();
  return cores > 1 ? cores : 0;
}

/** Feeds tasks to the checkers and the results, in order, to the join; stops at the first thing wrong. */
export async function checkAndJoin(
  tasks: AsyncIterable<CheckTask> | Iterable<CheckTask>,
  checkers: Checkers,
  join: LedgerJoin,
): Promise<void> {
  const pending: Promise<StretchFacts>[] = [];
  for await (const task of tasks) {
    const work = checkers.check(task);
    // Those behind a bad stretch are not waited for.
    work.catch(() => undefined);
    pending.push(work);
    if (pending.length >= 2 * checkers.width && !join.add(await pending.shift()!)) return;
  }
  for (const work of pending) if (!join.add(await work)) return;
}

/** What a thread does with each task, and what is done here where there are none. */
export class CheckHere implements Checkers {
  readonly width = 1;
  private readonly checker: StretchChecker;
  private readonly file: LineFile | null;

  constructor(setup: CheckSetup) {
    this.checker = new StretchChecker(setup.options);
    this.file = setup.path === null ? null : new LineFile(setup.path);
  }

  async check(task: CheckTask): Promise<StretchFacts> {
    // A server that checks its own ledger goes on answering in between.
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
  private readonly threads: Threads;

  constructor(setup: CheckSetup, threads: number) {
    this.width = threads;
    this.threads = new Threads({
      name: "the ledger's check",
      entry: entryModule("evidence/chain/worker"),
      setting: setup,
      most: threads,
    });
  }

  check(task: CheckTask): Promise<StretchFacts> {
    return this.threads.ask(task, { transfer: task.kind === "lines" ? [task.bytes] : [] });
  }

  close(): Promise<void> {
    return this.threads.close();
  }
}
