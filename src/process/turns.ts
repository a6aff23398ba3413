/**
 * The turns of the event loop: long work is done a little at a time, with room for everything else in between. However
 * many do long work at once, each turn of the loop goes to one of them.
 */
import type { Paced } from "../kernel/turns.ts";

const TURN_MS = 10;

/** Lets other work run whenever a turn has taken its time. */
export async function doInTurns<T>(work: Paced<T>): Promise<T> {
  for (let began = performance.now(); ; ) {
    const step = work.next();
    if (step.done) return step.value;
    if (performance.now() - began < TURN_MS) continue;
    await nextTurn();
    began = performance.now();
  }
}

/** Work that is there only where something is large; else nothing is waited for. */
export function doAnyInTurns(work: Paced<void> | undefined): Promise<void> | undefined {
  return work === undefined ? undefined : doInTurns(work);
}

/** Those that wait for a turn: each turn of the event loop goes to one, however many there are. */
const waiting: (() => void)[] = [];

/** Behind everything that waits for the event loop now. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (waiting.push(resolve) === 1) setImmediate(giveTurn);
  });
}

function giveTurn(): void {
  waiting.shift()?.();
  if (waiting.length > 0) setImmediate(giveTurn);
}
