/**
 * Which of many entries with conditions a call could satisfy: thresholds in order and values in sets, per path, so that
 * thousands of rules on one tool cost about as much as the few that its arguments reach. It leaves out only entries
 * with a condition that certainly fails; what cannot be compared may count against a call and is never left out.
 */
import type { Json } from "../../kernel/json.ts";
import { type Path, readPath } from "../../kernel/paths.ts";

/** One condition of an entry, of those that can be looked up. */
export interface EntryGuard {
  path: Path;
  op: keyof typeof GUARDS;
  value: Json;
}

type Scalar = string | number | boolean;

/** What has to be so of the value for the condition to hold: not below, not above, or one of. */
const GUARDS = { gt: "above", gte: "above", lt: "below", lte: "below", eq: "same", in: "same" } as const;

/** The condition by which an entry is found: sets part more than thresholds do. Undefined where none can be looked up. */
export function guardOf(
  when: readonly { path: Path; op: string; value: Json | undefined }[],
): EntryGuard | undefined {
  const usable = when.filter((one): one is EntryGuard => isGuard(one.op) && one.value !== undefined);
  return (
    usable.find((guard) => GUARDS[guard.op] === "same" && scalarsOf(guard) !== null) ??
    usable.find(({ op, value }) => GUARDS[op] !== "same" && typeof value === "number")
  );
}

const isGuard = (op: string): op is EntryGuard["op"] => Object.hasOwn(GUARDS, op);

/** The values, where all are plain and of one type: of several types, one can be compared where another cannot. */
function scalarsOf({ op, value }: EntryGuard): Scalar[] | null {
  const list = op === "in" && Array.isArray(value) ? value : [value];
  const type = typeof list[0];
  if (type !== "string" && type !== "number" && type !== "boolean") return null;
  return list.every((item) => typeof item === type) ? (list as Scalar[]) : null;
}

export class Sieve<E> {
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

  /** Every entry whose guard may hold for the arguments, in no order. */
  could(args: Json): E[] {
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
  private readonly path: Path;
  private readonly above: Threshold<E>[] = [];
  private readonly below: Threshold<E>[] = [];
  /** By type, then by value. */
  private readonly same = new Map<string, Map<Scalar, E[]>>();
  private sorted = true;

  constructor(path: Path) {
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

  could(args: Json, found: E[]): void {
    const value = readPath(this.path, { args, result: undefined });
    // What is not there satisfies none of them.
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

/** Takes from the start for as long as the threshold is reached. */
function take<E>(list: readonly Threshold<E>[], reached: (at: number) => boolean, found: E[]): void {
  for (const { at, entry } of list) {
    if (!reached(at)) return;
    found.push(entry);
  }
}
