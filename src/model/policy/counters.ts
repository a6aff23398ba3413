/**
 * Sliding windows in little space. A counter keeps about a hundred buckets, each named by its latest
 * charge: a charge then leaves the count late rather than early, so a window never counts too little,
 * not even after its length was changed. Time that goes backwards only makes charges stay longer.
 */
import { addUp, takeOff } from "./decimal.ts";

/** The third is the time of the first charge in it that may be given back; absent where there is none. */
export type Bucket = [latest: number, amount: number, first?: number];

/** What a call was charged that its undo may give back, and when it was. */
export interface Refundable {
  key: string;
  at_ms: number;
  amount: number;
}

export interface CounterDoc {
  /** Oldest first. */
  buckets: Bucket[];
  /** Of a flow's: the step that was counted. */
  step?: { run_id: string; step: number; tool: string };
}

const BUCKETS = 100;
/** More than a window needs; reached only after the window of a limit was changed. */
const MOST_BUCKETS = 2 * BUCKETS;

function alive(doc: CounterDoc | undefined, window_ms: number, now_ms: number): Bucket[] {
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
  refundable = false,
): CounterDoc {
  const buckets = alive(doc, window_ms, now_ms).map((bucket): Bucket => [...bucket]);
  const width = Math.max(1, Math.ceil(window_ms / BUCKETS));
  const last = buckets[buckets.length - 1];
  const at = Math.max(now_ms, last?.[0] ?? now_ms);
  if (last !== undefined && Math.floor(last[0] / width) === Math.floor(at / width)) {
    last[0] = at;
    last[1] = addUp(last[1], amount);
    if (refundable) last[2] ??= at;
  } else {
    buckets.push(refundable ? [at, amount, at] : [at, amount]);
  }
  while (buckets.length > MOST_BUCKETS) {
    const [, sum, first] = buckets.shift()!;
    const next = buckets[0]!;
    next[1] = addUp(next[1], sum);
    if (first !== undefined) next[2] = first;
  }
  return { buckets };
}

/**
 * The counter without a charge, taken out of the bucket that holds it and no other. Null where that bucket has left
 * the window: later calls pay for themselves.
 */
export function givenBack(
  doc: CounterDoc | undefined,
  { at_ms, amount }: Omit<Refundable, "key">,
): CounterDoc | null {
  const buckets = doc?.buckets ?? [];
  const own = buckets.find(([latest, , first]) => first !== undefined && first <= at_ms && at_ms <= latest);
  if (own === undefined) return null;
  const less: Bucket = [...own];
  less[1] = takeOff(own[1], amount);
  return { buckets: buckets.map((bucket) => (bucket === own ? less : bucket)) };
}
