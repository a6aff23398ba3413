/**
 * Cooperative scheduling: runs long work in slices, so that the event loop stays responsive. Several long tasks share
 * the loop: each turn runs one slice of one task.
 */
import type { PausableWork } from "../kernel/pausable-work.ts";

const TURN_MS = 10;

/** When the slices of this turn of the event loop began. Undefined if none has run in this turn. */
let turnBegan: number | undefined;

/**
 * Runs the work, and yields to the event loop whenever the slices of one turn have used up its time. All work of a turn
 * counts together: a hundred short works in a row would otherwise be one long slice.
 */
export async function runInSlices<T>(work: PausableWork<T>): Promise<T> {
  for (;;) {
    const began = beginTurn();
    const step = work.next();
    if (step.done) return step.value;
    if (performance.now() - began >= TURN_MS) await nextEventLoopTurn();
  }
}

function beginTurn(): number {
  if (turnBegan === undefined) {
    turnBegan = performance.now();
    setImmediate(endTurn);
  }
  return turnBegan;
}

function endTurn(): void {
  turnBegan = undefined;
}

/** Runs the work if there is any. Without work, the caller has nothing to await. */
export function runAnyInSlices(work: PausableWork<void> | undefined): Promise<void> | undefined {
  return work === undefined ? undefined : runInSlices(work);
}

/** Tasks that wait for a turn. Each turn of the event loop resumes one of them. */
const waiting: (() => void)[] = [];

/** Resolves after everything that is queued in the event loop now. */
export function nextEventLoopTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (waiting.push(resolve) === 1) setImmediate(giveTurn);
  });
}

function giveTurn(): void {
  endTurn();
  waiting.shift()?.();
  if (waiting.length > 0) setImmediate(giveTurn);
}
