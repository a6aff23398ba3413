/**
 * Sliding windows in little space. A counter keeps about a hundred buckets, each named by its latest
 * charge: a charge then leaves the count late rather than early, so a window never counts too little,
 * not even after its length was changed. Time that goes backwards only makes charges stay longer.
 */
import { addUp } from "./decimal.ts";

/** `[time of the latest charge in it, amount]`, oldest first. */
export interface CounterDoc {
  buckets: [number, number][];
  /** Of a flow's: the step that was counted. */
  step?: { run_id: string; step: number; tool: string };
}

const BUCKETS = 100;
/** More than a window needs; reached only after the window of a limit was changed. */
const MOST_BUCKETS = 2 * BUCKETS;

function alive(doc: CounterDoc | undefined, window_ms: number, now_ms: number): [number, number][] {
  return (doc?.buckets ?? []).filter(([latest]) => latest > now_ms - window_ms);
}

export function usedIn(doc: CounterDoc | undefined, window_ms: number, now_ms: number): number {
  return alive(doc, window_ms, now_ms).reduce((sum, [, amount]) => addUp(sum, amount), 0);
}

export function charged(
  doc: CounterDoc | undefined,
  window_ms: number,
  now_ms: number,
  amount: number,
): CounterDoc {
  const buckets = alive(doc, window_ms, now_ms).map(([latest, sum]): [number, number] => [latest, sum]);
  const width = Math.max(1, Math.ceil(window_ms / BUCKETS));
  const last = buckets[buckets.length - 1];
  const at = Math.max(now_ms, last?.[0] ?? now_ms);
  if (last !== undefined && Math.floor(last[0] / width) === Math.floor(at / width)) {
    last[0] = at;
    last[1] = addUp(last[1], amount);
  } else {
    buckets.push([at, amount]);
  }
  while (buckets.length > MOST_BUCKETS) {
    const oldest = buckets.shift()!;
    buckets[0]![1] = addUp(buckets[0]![1], oldest[1]);
  }
  return { buckets };
}
