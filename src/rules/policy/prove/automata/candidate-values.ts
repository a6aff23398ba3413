/**
 * Representative values for a set of conditions on one path, at least one of each kind that they can distinguish. The
 * conditions themselves determine the kind of a value; this file ensures that no kind is missing.
 */
import { toCanonicalJson } from "../../../../kernel/json/canonical.ts";
import type { JsonValue } from "../../../../kernel/json/json.ts";
import { jsonEquals } from "../../ops/equal.ts";
import type { OpName } from "../../ops/table.ts";
import { exampleTexts } from "./example-texts.ts";
import {
  ANY_MANY,
  literalPieces,
  type PatternPiece,
  type TextMachine,
  UndecidableError,
  wildMachine,
} from "./machine.ts";
import { regexMachine } from "./regex.ts";

/** Condition on the value at a path. */
export interface ValueCondition {
  op: OpName;
  value: JsonValue | undefined;
}

export interface CandidateValue {
  /** Undefined if the path does not exist. */
  value: JsonValue | undefined;
  /** The value is the only one of its kind, not a sample. */
  alone: boolean;
}

/** Maximum lists that conditions on elements can distinguish; above it the result is incomplete. */
const MAX_LISTS = 256;

const MACHINES: { readonly [K in OpName]?: (value: JsonValue) => readonly PatternPiece[][] } = {
  eq: (value) => texts([value]),
  ne: (value) => texts([value]),
  in: (value) => texts(value as JsonValue[]),
  not_in: (value) => texts(value as JsonValue[]),
  contains: (value) => texts([value]).map((pieces) => [ANY_MANY, ...pieces, ANY_MANY]),
  not_contains: (value) => texts([value]).map((pieces) => [ANY_MANY, ...pieces, ANY_MANY]),
  starts_with: (value) => texts([value]).map((pieces) => [...pieces, ANY_MANY]),
  ends_with: (value) => texts([value]).map((pieces) => [ANY_MANY, ...pieces]),
};

function texts(values: readonly JsonValue[]): PatternPiece[][] {
  return values.flatMap((value) => (typeof value === "string" ? [literalPieces(value)] : []));
}

export function candidateValues(
  asked: readonly ValueCondition[],
  amounts: readonly number[] = [],
): CandidateValue[] {
  const operands = asked.flatMap(({ op, value }): JsonValue[] => {
    if (value === undefined || op === "exists" || op === "absent") return [];
    return op === "in" || op === "not_in" ? (value as JsonValue[]) : [value];
  });
  const some = (value: JsonValue): CandidateValue => ({ value, alone: false });
  const named = new Set(operands.map((value) => toCanonicalJson(value)));
  return [
    { value: undefined, alone: true },
    ...[null, true, false].map((value) => ({ value, alone: true })),
    ...candidateNumbers([...operands.filter((value) => typeof value === "number"), ...amounts]),
    ...textsTold(asked),
    ...operands
      .filter((value) => typeof value === "object" && value !== null)
      .map((value) => ({ value, alone: true })),
    some(freshObject({}, named)),
    ...listsTold(asked, named).map(some),
  ];
}

/** Adds a member to the object, with a name that no condition reads, so that no condition names the result. */
export function freshObject(
  object: { readonly [name: string]: JsonValue },
  named: ReadonlySet<string>,
  members: readonly string[] = [],
): JsonValue {
  for (let name = "other"; ; name += "_") {
    const more = { ...object, [name]: true };
    if (!members.includes(name) && !named.has(toCanonicalJson(more))) return more;
  }
}

/** Extends the list until no condition names it. */
export function freshList(list: readonly JsonValue[], named: ReadonlySet<string>): JsonValue[] {
  const longer = [...list, list.length === 0 ? 0 : list[0]!];
  return named.has(toCanonicalJson(longer)) ? freshList(longer, named) : longer;
}

function textsTold(asked: readonly ValueCondition[]): CandidateValue[] {
  const machines: TextMachine[] = [];
  /** Machines that accept only listed texts. */
  const single = new Set<number>();
  for (const { op, value } of asked) {
    if (op.endsWith("matches")) machines.push(regexMachine(value as string));
    const pieces = MACHINES[op]?.(value ?? null) ?? [];
    if (pieces.length === 0) continue;
    if (op === "eq" || op === "ne" || op === "in" || op === "not_in") single.add(machines.length);
    machines.push(wildMachine(pieces));
  }
  return exampleTexts(machines).flatMap(({ shown, texts, more }) => {
    const alone = !more && [...single].some((i) => shown[i] === "1");
    return texts.map((value) => ({ value, alone }));
  });
}

/** Each named number, and one number in each gap between them. */
function candidateNumbers(named: readonly number[]): CandidateValue[] {
  const cuts = [...new Set(named)].sort((a, b) => a - b);
  if (cuts.length === 0) return [{ value: 1, alone: false }];
  const found: CandidateValue[] = [];
  const least = Math.min(Math.ceil(cuts[0]!) - 1, Number.MAX_SAFE_INTEGER);
  if (canBeSent(least)) found.push({ value: least, alone: false });
  for (const [i, cut] of cuts.entries()) {
    if (canBeSent(cut)) found.push({ value: cut, alone: true });
    const gap = numberBetween(cut, cuts[i + 1]);
    if (gap !== undefined) found.push({ value: gap, alone: false });
  }
  return found;
}

/** False for unsafe integers: the service rejects such calls before deciding. */
function canBeSent(value: number): boolean {
  return Number.isSafeInteger(value) || (Number.isFinite(value) && !Number.isInteger(value));
}

/** A round number between `low` and `high`, or the nearest possible one; undefined if there is none. */
function numberBetween(low: number, high: number | undefined): number | undefined {
  const fits = (value: number) => value > low && (high === undefined || value < high) && canBeSent(value);
  const near = low + Math.max(Math.abs(low), Number.MIN_VALUE) * Number.EPSILON;
  const middle = high === undefined ? low * 2 : low / 2 + high / 2;
  const next = Math.max(Math.floor(low) + 1, Number.MIN_SAFE_INTEGER);
  return [next, Number(middle.toPrecision(6)), middle, near].find(fits);
}

/**
 * Representative lists. Conditions on a list depend on the results of its elements, so the lists are all unions of
 * element results, and the empty list. Their first element repeats until no other condition names the list.
 */
function listsTold(asked: readonly ValueCondition[], named: ReadonlySet<string>): JsonValue[] {
  const sought = asked.flatMap(({ op, value }) =>
    op === "contains" || op === "not_contains" ? [value!] : [],
  );
  const plain: JsonValue[] = [[], freshList([0, 0], named)];
  if (sought.length === 0) return plain;
  const looked = new Set(sought.map((value) => toCanonicalJson(value)));
  const elements: JsonValue[] = [
    ...sought,
    null,
    true,
    false,
    freshNumber(sought),
    freshText(sought),
    freshList([], looked),
    freshObject({}, looked),
  ];
  const shown = (list: readonly JsonValue[]) =>
    sought.map((operand) => joined(list.map((element) => jsonEquals(operand, element)))).join("");
  const kinds = [...new Map(elements.map((element) => [shown([element]), element])).values()];
  const made = new Map<string, JsonValue[]>();
  for (const element of kinds) {
    for (const list of [[], ...made.values()]) {
      const longer = [...list, element];
      const key = shown(longer);
      if (!made.has(key)) made.set(key, longer);
    }
    if (made.size > MAX_LISTS) throw new UndecidableError("too many conditions check the elements of a list");
  }
  return [...plain, ...[...made.values()].map((list) => freshList(list, named))];
}

/** Combines element results as `contains` does. */
function joined(answers: readonly (boolean | undefined)[]): string {
  if (answers.includes(true)) return "1";
  return answers.includes(undefined) ? "?" : "0";
}

function freshNumber(taken: readonly JsonValue[]): number {
  for (let n = 7; ; n++) if (!taken.includes(n)) return n;
}

function freshText(taken: readonly JsonValue[]): string {
  for (let text = "x"; ; text += "x") if (!taken.includes(text)) return text;
}
