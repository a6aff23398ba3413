/** Queue of calls to be written, limited in number and weight, so that a slow store cannot fill the memory. */
import type { JsonObject, JsonValue } from "../kernel/json/json.ts";
import { memberNames } from "../kernel/json/known-large.ts";

const MAX_QUEUED_CALLS = 10_000;
const MAX_QUEUED_BYTES = 64 * 1_024 * 1_024;
/** Values are weighed up to this size. A larger one counts as the largest possible request. */
const WEIGHED = 64 * 1_024;
const LARGEST = 1_024 * 1_024;

export class BoundedQueue<T extends { readonly weight: number }> {
  private items: T[] = [];
  private weight = 0;

  get length(): number {
    return this.items.length;
  }

  /** Returns false if the queue is full. */
  push(item: T): boolean {
    if (this.items.length >= MAX_QUEUED_CALLS || this.weight + item.weight > MAX_QUEUED_BYTES) return false;
    this.items.push(item);
    this.weight += item.weight;
    return true;
  }

  /** Removes the oldest items up to a number and a weight, at least one. */
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

/** Approximate size of a value in bytes. It is cheap, because every decision calls it. */
export function weightOf(value: JsonValue): number {
  let sum = 0;
  const pending: JsonValue[] = [value];
  while (pending.length > 0 && sum < WEIGHED) {
    const here = pending.pop()!;
    if (typeof here === "string") sum += here.length;
    else if (here === null || typeof here !== "object") sum += 8;
    else {
      const names = Array.isArray(here) ? null : memberNames(here);
      sum += 16 * ((names ?? (here as JsonValue[])).length + 1);
      if (sum >= WEIGHED) break;
      if (names === null) pending.push(...(here as JsonValue[]));
      else for (const name of names) pending.push((here as JsonObject)[name]!);
    }
  }
  return sum < WEIGHED ? sum : LARGEST;
}
