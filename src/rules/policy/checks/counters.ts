/**
 * Sliding-window counters in constant space. A counter has about a hundred buckets, each dated by its latest charge. A
 * charge thus leaves the window late rather than early, and a window never counts too little, even after its length
 * changes. If the clock goes back, charges only count longer.
 */
import { subtractAmount, sumAmounts } from "./decimal.ts";

/** `first` is the time of the bucket's first refundable charge, if any. */
export type CounterBucket = [latest: number, amount: number, first?: number];

/** Charge of a call that its undo can refund, and its time. */
export interface RefundableCharge {
  key: string;
  at_ms: number;
  amount: number;
}

export interface CounterDoc {
  /** Oldest first. */
  buckets: CounterBucket[];
  /** For flows: the step that triggered it. */
  step?: { run_id: string; step: number; tool: string };
}

const BUCKETS = 100;
/** More than a window needs; reached only after a change of a limit's window. */
const MAX_BUCKETS = 2 * BUCKETS;

function alive(doc: CounterDoc | undefined, window_ms: number, now_ms: number): CounterBucket[] {
  return (doc?.buckets ?? []).filter(([latest]) => latest > now_ms - window_ms);
}

export function usedIn(doc: CounterDoc | undefined, window_ms: number, now_ms: number): number {
  return alive(doc, window_ms, now_ms).reduce((sum, [, amount]) => sumAmounts(sum, amount), 0);
}

export function chargedCounter(
  doc: CounterDoc | undefined,
  window_ms: number,
  now_ms: number,
  amount: number,
  refundable = false,
): CounterDoc {
  const buckets = alive(doc, window_ms, now_ms).map((bucket): CounterBucket => [...bucket]);
  const width = Math.max(1, Math.ceil(window_ms / BUCKETS));
  const last = buckets[buckets.length - 1];
  const at = Math.max(now_ms, last?.[0] ?? now_ms);
  if (last !== undefined && Math.floor(last[0] / width) === Math.floor(at / width)) {
    last[0] = at;
    last[1] = sumAmounts(last[1], amount);
    if (refundable) last[2] ??= at;
  } else {
    buckets.push(refundable ? [at, amount, at] : [at, amount]);
  }
  while (buckets.length > MAX_BUCKETS) {
    const [, sum, first] = buckets.shift()!;
    const next = buckets[0]!;
    next[1] = sumAmounts(next[1], sum);
    if (first !== undefined) next[2] = first;
  }
  return { buckets };
}

/**
 * Removes a charge from the bucket that contains it. Null if that bucket has left the window; a refund must not reduce
 * later charges.
 */
export function refundedCounter(
  doc: CounterDoc | undefined,
  { at_ms, amount }: Omit<RefundableCharge, "key">,
): CounterDoc | null {
  const buckets = doc?.buckets ?? [];
  const own = buckets.find(([latest, , first]) => first !== undefined && first <= at_ms && at_ms <= latest);
  if (own === undefined) return null;
  const less: CounterBucket = [...own];
  less[1] = subtractAmount(own[1], amount);
  return { buckets: buckets.map((bucket) => (bucket === own ? less : bucket)) };
}
