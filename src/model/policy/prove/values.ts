/**
 * All the values that a set of conditions on one path can tell apart, one of each kind. Which kind a value is of is
 * found by asking the conditions themselves; what is owed here is that no kind is left out.
 */
import { canonical } from "../../../kernel/canonical.ts";
import type { Json } from "../../../kernel/json.ts";
import { same } from "../ops/equal.ts";
import type { OpName } from "../ops/table.ts";
import { literal, MANY, type Machine, type Piece, Undecidable, wildMachine } from "./machine.ts";
import { regexMachine } from "./regex.ts";
import { words } from "./words.ts";

/** A condition on the value at a path. */
export interface ValueCondition {
  op: OpName;
  value: Json | undefined;
}

export interface Candidate {
  /** Undefined where the path leads nowhere. */
  value: Json | undefined;
  /** The value stands for itself alone, not for others of its kind. */
  alone: boolean;
}

/** Lists that conditions on their elements can tell apart; beyond it the question is too large. */
const MOST_LISTS = 256;

const MACHINES: { readonly [K in OpName]?: (value: Json) => readonly Piece[][] } = {
  eq: (value) => texts([value]),
  ne: (value) => texts([value]),
  in: (value) => texts(value as Json[]),
  not_in: (value) => texts(value as Json[]),
  contains: (value) => texts([value]).map((pieces) => [MANY, ...pieces, MANY]),
  not_contains: (value) => texts([value]).map((pieces) => [MANY, ...pieces, MANY]),
  starts_with: (value) => texts([value]).map((pieces) => [...pieces, MANY]),
  ends_with: (value) => texts([value]).map((pieces) => [MANY, ...pieces]),
};

function texts(values: readonly Json[]): Piece[][] {
  return values.flatMap((value) => (typeof value === "string" ? [literal(value)] : []));
}

export function candidates(asked: readonly ValueCondition[], amounts: readonly number[] = []): Candidate[] {
  const operands = asked.flatMap(({ op, value }): Json[] => {
    if (value === undefined || op === "exists" || op === "absent") return [];
    return op === "in" || op === "not_in" ? (value as Json[]) : [value];
  });
  const some = (value: Json): Candidate => ({ value, alone: false });
  const named = new Set(operands.map((value) => canonical(value)));
  return [
    { value: undefined, alone: true },
    ...[null, true, false].map((value) => ({ value, alone: true })),
    ...numbers([...operands.filter((value) => typeof value === "number"), ...amounts]),
    ...textsTold(asked),
    ...operands
      .filter((value) => typeof value === "object" && value !== null)
      .map((value) => ({ value, alone: true })),
    some(freshObject({}, named)),
    ...listsTold(asked, named).map(some),
  ];
}

/** The object with one member more than it has, none of those looked at, so that no condition names it. */
export function freshObject(
  object: { readonly [name: string]: Json },
  named: ReadonlySet<string>,
  members: readonly string[] = [],
): Json {
  for (let name = "other"; ; name += "_") {
    const more = { ...object, [name]: true };
    if (!members.includes(name) && !named.has(canonical(more))) return more;
  }
}

/** The list, made longer until it is none that a condition names. */
export function freshList(list: readonly Json[], named: ReadonlySet<string>): Json[] {
  const longer = [...list, list.length === 0 ? 0 : list[0]!];
  return named.has(canonical(longer)) ? freshList(longer, named) : longer;
}

function textsTold(asked: readonly ValueCondition[]): Candidate[] {
  const machines: Machine[] = [];
  /** The machines whose texts are a list of single ones. */
  const single = new Set<number>();
  for (const { op, value } of asked) {
    if (op.endsWith("matches")) machines.push(regexMachine(value as string));
    const pieces = MACHINES[op]?.(value ?? null) ?? [];
    if (pieces.length === 0) continue;
    if (op === "eq" || op === "ne" || op === "in" || op === "not_in") single.add(machines.length);
    machines.push(wildMachine(pieces));
  }
  return words(machines).flatMap(({ shown, texts, more }) => {
    const alone = !more && [...single].some((i) => shown[i] === "1");
    return texts.map((value) => ({ value, alone }));
  });
}

/** Each number that is named, and one in each gap between two. */
export function numbers(named: readonly number[]): Candidate[] {
  const cuts = [...new Set(named)].sort((a, b) => a - b);
  if (cuts.length === 0) return [{ value: 1, alone: false }];
  const found: Candidate[] = [];
  const least = Math.min(Math.ceil(cuts[0]!) - 1, Number.MAX_SAFE_INTEGER);
  if (canBeSent(least)) found.push({ value: least, alone: false });
  for (const [i, cut] of cuts.entries()) {
    if (canBeSent(cut)) found.push({ value: cut, alone: true });
    const gap = between(cut, cuts[i + 1]);
    if (gap !== undefined) found.push({ value: gap, alone: false });
  }
  return found;
}

/** No call has an integer that a computer may have rounded: it is refused before it is decided. */
function canBeSent(value: number): boolean {
  return Number.isSafeInteger(value) || (Number.isFinite(value) && !Number.isInteger(value));
}

/** A plain number above `low` and below `high`, or the nearest that there is; undefined where there is none. */
export function between(low: number, high: number | undefined): number | undefined {
  const fits = (value: number) => value > low && (high === undefined || value < high) && canBeSent(value);
  const near = low + Math.max(Math.abs(low), Number.MIN_VALUE) * Number.EPSILON;
  const middle = high === undefined ? low * 2 : low / 2 + high / 2;
  const next = Math.max(Math.floor(low) + 1, Number.MIN_SAFE_INTEGER);
  return [next, Number(middle.toPrecision(6)), middle, near].find(fits);
}

/**
 * A list is told by what its elements show together, so the lists are the unions of what single elements show, and the
 * empty one. Their first element stands several times, so that none is a list that another condition names.
 */
function listsTold(asked: readonly ValueCondition[], named: ReadonlySet<string>): Json[] {
  const sought = asked.flatMap(({ op, value }) =>
    op === "contains" || op === "not_contains" ? [value!] : [],
  );
  const plain: Json[] = [[], freshList([0, 0], named)];
  if (sought.length === 0) return plain;
  const looked = new Set(sought.map((value) => canonical(value)));
  const elements: Json[] = [
    ...sought,
    null,
    true,
    false,
    freshNumber(sought),
    freshText(sought),
    freshList([], looked),
    freshObject({}, looked),
  ];
  const shown = (list: readonly Json[]) =>
    sought.map((operand) => joined(list.map((element) => same(operand, element)))).join("");
  const kinds = [...new Map(elements.map((element) => [shown([element]), element])).values()];
  const made = new Map<string, Json[]>();
  for (const element of kinds) {
    for (const list of [[], ...made.values()]) {
      const longer = [...list, element];
      const key = shown(longer);
      if (!made.has(key)) made.set(key, longer);
    }
    if (made.size > MOST_LISTS) throw new Undecidable("too many conditions ask what a list contains");
  }
  return [...plain, ...[...made.values()].map((list) => freshList(list, named))];
}

/** As `contains` reads a whole list. */
function joined(answers: readonly (boolean | undefined)[]): string {
  if (answers.includes(true)) return "1";
  return answers.includes(undefined) ? "?" : "0";
}

function freshNumber(taken: readonly Json[]): number {
  for (let n = 7; ; n++) if (!taken.includes(n)) return n;
}

function freshText(taken: readonly Json[]): string {
  for (let text = "x"; ; text += "x") if (!taken.includes(text)) return text;
}
