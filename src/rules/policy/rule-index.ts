/**
 * Index of conditional rules: sorted thresholds and value sets per path, so that thousands of rules on one tool cost
 * about as much as the few that the arguments reach. It skips only entries with a condition that certainly fails. An
 * incomparable value can count against a call, so its entries are never skipped.
 */
import type { JsonValue } from "../../kernel/json/json.ts";
import { readPath, type ValuePath } from "../../kernel/paths.ts";

/** An indexed condition of an entry. */
export interface EntryGuard {
  path: ValuePath;
  op: keyof typeof GUARDS;
  value: JsonValue;
}

type Scalar = string | number | boolean;

/** Kind of index for each op: a lower bound, an upper bound, or a set of values. */
const GUARDS = { gt: "above", gte: "above", lt: "below", lte: "below", eq: "same", in: "same" } as const;

/**
 * Condition to index an entry by. Prefers sets, which are more selective than thresholds. Undefined if no condition can
 * be indexed.
 */
export function guardOf(
  when: readonly { path: ValuePath; op: string; value: JsonValue | undefined }[],
): EntryGuard | undefined {
  const usable = when.filter((one): one is EntryGuard => isGuard(one.op) && one.value !== undefined);
  return (
    usable.find((guard) => GUARDS[guard.op] === "same" && scalarsOf(guard) !== null) ??
    usable.find(({ op, value }) => GUARDS[op] !== "same" && typeof value === "number")
  );
}

const isGuard = (op: string): op is EntryGuard["op"] => Object.hasOwn(GUARDS, op);

/**
 * Values of a condition if all are scalars of one type. With several types, a value can be comparable with one and not
 * with another.
 */
function scalarsOf({ op, value }: EntryGuard): Scalar[] | null {
  const list = op === "in" && Array.isArray(value) ? value : [value];
  const type = typeof list[0];
  if (type !== "string" && type !== "number" && type !== "boolean") return null;
  return list.every((item) => typeof item === type) ? (list as Scalar[]) : null;
}

export class RuleIndex<E> {
  private readonly rest: E[] = [];
  private readonly byPath = new Map<string, OnePath<E>>();

  add(entry: E, guard: EntryGuard | undefined): void {
    if (guard === undefined) {
      this.rest.push(entry);
      return;
    }
    const { source } = guard.path;
    let one = this.byPath.get(source);
    if (one === undefined) {
      one = new OnePath(guard.path);
      this.byPath.set(source, one);
    }
    one.add(entry, guard);
  }

  /** Entries whose guard can hold for the arguments, in no particular order. */
  could(args: JsonValue): E[] {
    const found = [...this.rest];
    for (const one of this.byPath.values()) one.could(args, found);
    return found;
  }
}

interface Threshold<E> {
  at: number;
  entry: E;
}

class OnePath<E> {
  private readonly path: ValuePath;
  private readonly above: Threshold<E>[] = [];
  private readonly below: Threshold<E>[] = [];
  /** By type, then by value. */
  private readonly same = new Map<string, Map<Scalar, E[]>>();
  private sorted = true;

  constructor(path: ValuePath) {
    this.path = path;
  }

  add(entry: E, guard: EntryGuard): void {
    const kind = GUARDS[guard.op];
    if (kind !== "same") {
      this[kind].push({ at: guard.value as number, entry });
      this.sorted = false;
      return;
    }
    const scalars = new Set(scalarsOf(guard)!);
    const type = typeof [...scalars][0];
    const values = this.same.get(type) ?? new Map<Scalar, E[]>();
    this.same.set(type, values);
    for (const scalar of scalars) {
      const list = values.get(scalar);
      if (list === undefined) values.set(scalar, [entry]);
      else list.push(entry);
    }
  }

  could(args: JsonValue, found: E[]): void {
    const value = readPath(this.path, { args, result: undefined });
    // A missing value satisfies none of them.
    if (value === undefined) return;
    if (!this.sorted) this.sort();
    const number = typeof value === "number" ? value : null;
    take(this.above, (at) => number === null || at <= number, found);
    take(this.below, (at) => number === null || at >= number, found);
    if (value === null) return;
    for (const [type, values] of this.same) {
      const lists = type === typeof value ? [values.get(value as Scalar) ?? []] : values.values();
      for (const list of lists) for (const entry of list) found.push(entry);
    }
  }

  private sort(): void {
    this.above.sort((a, b) => a.at - b.at);
    this.below.sort((a, b) => b.at - a.at);
    this.sorted = true;
  }
}

/** Collects entries from the start of the list until a threshold is not reached. */
function take<E>(list: readonly Threshold<E>[], reached: (at: number) => boolean, found: E[]): void {
  for (const { at, entry } of list) {
    if (!reached(at)) return;
    found.push(entry);
  }
}
