/**
 * Rolls back several runs as one: undos of all runs are interleaved, newest first by the ledger position of their
 * calls. A run is opened only when its newest call is next.
 */
import type { StepDoc } from "../../govern/runs/run.ts";

export interface RunToUndo {
  run_id: string;
  /** Ledger position of its newest call that has to be undone. */
  newest_seq: number;
}

export type LedgerPlaced = Pick<StepDoc, "intended_seq" | "succeeded_seq">;

/** Ledger position at which a call took effect. Overlapping calls may end in a different order than they began. */
export const ledgerPlace = ({ intended_seq, succeeded_seq }: LedgerPlaced): number =>
  succeeded_seq ?? intended_seq;

export type UndoStepFn = (step: LedgerPlaced) => Promise<void>;

/** Lists every step of the runs in the order of their undos, for previews. */
export function undoOrder<T extends { steps: readonly StepDoc[] }>(runs: readonly T[]): [T, StepDoc][] {
  const visits = runs.flatMap((run) => {
    let at = Number.POSITIVE_INFINITY;
    return run.steps.toReversed().map((step) => {
      // Within a run, steps are undone newest first: a step that took effect later still waits for its run's newer
      // steps.
      at = Math.min(at, ledgerPlace(step));
      return { at, run, step };
    });
  });
  return visits.sort((a, b) => b.at - a.at).map(({ run, step }) => [run, step]);
}

/** One run's rollback, which pauses before each undo until it may continue. */
class TurnTaker {
  /** Ledger position of the call whose undo waits; null while an undo runs, and at the end. */
  waits_at: number | null = null;
  ended = false;
  private go: { on(): void; off(error: unknown): void } | null = null;
  private stops: () => void = () => {};

  readonly turn: UndoStepFn = (step) =>
    new Promise((on, off) => {
      this.waits_at = ledgerPlace(step);
      this.go = { on, off };
      this.stops();
    });

  /** Lets the rollback continue until it waits again or ends. */
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

/** `rollBack` undoes one run. The first failure ends all rollbacks and is thrown after all of them have ended. */
export async function rollBackInOrder(
  runs: readonly RunToUndo[],
  rollBack: (run_id: string, turn: UndoStepFn) => Promise<void>,
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
