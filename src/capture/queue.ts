/** Calls that wait to be written: bounded in number and in weight, so that a slow store cannot fill the memory. */
import type { Json } from "../kernel/json.ts";

const MOST_ITEMS = 10_000;
const MOST_WEIGHT = 64 * 1_024 * 1_024;
/** Up to here a value is weighed; a larger one counts as the largest that a request can bring. */
const WEIGHED = 64 * 1_024;
const LARGEST = 1_024 * 1_024;

export class BoundedQueue<T extends { readonly weight: number }> {
  private items: T[] = [];
  private weight = 0;

  get length(): number {
    return this.items.length;
  }

  /** False when there is no room. */
  push(item: T): boolean {
    if (this.items.length >= MOST_ITEMS || this.weight + item.weight > MOST_WEIGHT) return false;
    this.items.push(item);
    this.weight += item.weight;
    return true;
  }

  /** The oldest, up to so many and so heavy, at least one. */
  take(most: number, weight: number): T[] {
    let n = 0;
    let sum = 0;
    while (n < this.items.length && n < most && (n === 0 || sum + this.items[n]!.weight <= weight)) {
      sum += this.items[n]!.weight;
      n++;
    }
    this.weight -= sum;
    return this.items.splice(0, n);
  }
}

/** About how many bytes the value takes; it costs little, since it is asked in the path of a decision. */
export function weightOf(value: Json): number {
  let sum = 0;
  const pending: Json[] = [value];
  while (pending.length > 0 && sum < WEIGHED) {
    const here = pending.pop()!;
    if (typeof here === "string") sum += here.length;
    else if (here === null || typeof here !== "object") sum += 8;
    else {
      const inner = Array.isArray(here) ? here : Object.values(here);
      sum += 16 * (inner.length + 1);
      if (sum < WEIGHED) for (const item of inner) pending.push(item);
    }
  }
  return sum < WEIGHED ? sum : LARGEST;
}
