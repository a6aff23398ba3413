/**
 * Rollbacks of several runs as one: their undos take turns, newest first by where their calls stand on the
 * ledger, whichever run they belong to. A run is opened when its newest call comes up, and not before.
 */
import type { StepDoc } from "../model/run.ts";

export interface RunToUndo {
  run_id: string;
  /** Where its newest call that has to be undone stands on the ledger. */
  newest_seq: number;
}

type Placed = Pick<StepDoc, "intended_seq" | "succeeded_seq">;

/** Where a call stands on the ledger: where it took effect, since calls that overlap may end in another order. */
export const ledgerPlace = ({ intended_seq, succeeded_seq }: Placed): number => succeeded_seq ?? intended_seq;

export type Turn = (step: Placed) => Promise<void>;

/** Every step of the runs in the order in which their undos take turns, to tell it beforehand. */
export function inTurn<T extends { steps: readonly StepDoc[] }>(runs: readonly T[]): [T, StepDoc][] {
  const visits = runs.flatMap((run) => {
    let at = Number.POSITIVE_INFINITY;
    return run.steps.toReversed().map((step) => {
      // A run goes back step by step: one that took effect later waits for the newer ones of its run all the same.
      at = Math.min(at, ledgerPlace(step));
      return { at, run, step };
    });
  });
  return visits.sort((a, b) => b.at - a.at).map(({ run, step }) => [run, step]);
}

/** One run's rollback, which stops before each undo until it is let on. */
class TurnTaker {
  /** Where the call stands whose undo waits for its turn; null while one is under way, and at the end. */
  waits_at: number | null = null;
  ended = false;
  private go: { on(): void; off(error: unknown): void } | null = null;
  private stops: () => void = () => {};

  readonly turn: Turn = (step) =>
    new Promise((on, off) => {
      this.waits_at = ledgerPlace(step);
      this.go = { on, off };
      this.stops();
    });

  /** Lets the work on until it waits again or has ended. */
  async advance(work?: () => Promise<void>): Promise<void> {
    const stopped = new Promise<void>((resolve) => {
      this.stops = resolve;
    });
    this.waits_at = null;
    if (work === undefined) this.go?.on();
    else {
      void work().finally(() => {
        this.ended = true;
        this.stops();
      });
    }
    await stopped;
  }

  breakOff(error: unknown): void {
    if (this.waits_at !== null) this.go?.off(error);
  }
}

/** `rollBack` undoes one run. What the first one to fail throws ends all of them, and is thrown once all have ended. */
export async function rollBackInOrder(
  runs: readonly RunToUndo[],
  rollBack: (run_id: string, turn: Turn) => Promise<void>,
): Promise<void> {
  const unopened = [...runs].sort((a, b) => a.newest_seq - b.newest_seq);
  const open = new Set<TurnTaker>();
  const works: Promise<void>[] = [];
  let failure: { error: unknown } | null = null;
  const begin = async ({ run_id }: RunToUndo): Promise<void> => {
    const taker = new TurnTaker();
    open.add(taker);
    await taker.advance(() => {
      const work = rollBack(run_id, taker.turn).catch((error: unknown) => {
        failure ??= { error };
      });
      works.push(work);
      return work;
    });
    if (taker.ended) open.delete(taker);
  };
  while (failure === null) {
    const next = newest(open);
    const fresh = unopened.at(-1);
    if (fresh !== undefined && (next === null || fresh.newest_seq > next.waits_at!)) {
      unopened.pop();
      await begin(fresh);
    } else if (next !== null) {
      await next.advance();
      if (next.ended) open.delete(next);
    } else break;
  }
  const failed = failure as { error: unknown } | null;
  if (failed !== null) for (const taker of open) taker.breakOff(failed.error);
  await Promise.all(works);
  if (failed !== null) throw failed.error;
}

function newest(open: ReadonlySet<TurnTaker>): (TurnTaker & { waits_at: number }) | null {
  let found: TurnTaker | null = null;
  for (const taker of open)
    if (taker.waits_at !== null && taker.waits_at > (found?.waits_at ?? -1)) found = taker;
  return found as (TurnTaker & { waits_at: number }) | null;
}
