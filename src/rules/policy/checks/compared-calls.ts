/**
 * Conditions of a flow that compare a call with an earlier one, such as "another account than the one that was read".
 * Both sides are compared as keyed hashes. Only numbers that a condition orders are compared as they are.
 */
import type { JsonValue } from "../../../kernel/json/json.ts";
import { readPath, tryPath, type ValuePath } from "../../../kernel/paths.ts";
import { typeOf } from "../ops/equal.ts";
import type { CompareFn } from "../ops/op.ts";
import { COMPARISON_OPS, type OpName } from "../ops/table.ts";

/** Operators that can compare two calls. */
export const CALL_COMPARISONS = ["eq", "ne", "gt", "gte", "lt", "lte"] as const;
type CallComparison = (typeof CALL_COMPARISONS)[number];

/** A value of a call, as it is kept for comparisons. */
export interface SeenValue {
  type: string;
  hash: string;
  /** Only for a number that a condition orders and that no manifest masks. */
  number?: number;
}

/** An earlier call with its compared values, by path such as `$result.account`. */
export interface EarlierCall {
  run_id: string;
  step: number;
  tool: string;
  at_ms: number;
  values: { [path: string]: SeenValue };
}

export interface ComparedCalls {
  own: { [path: string]: SeenValue };
  calls: readonly EarlierCall[];
  /** True if there were more different calls than are kept. The flow then applies to every call. */
  over: boolean;
}

/** With a constant. */
interface ConstantCondition {
  path: ValuePath;
  whenMissing: boolean;
  compare: CompareFn;
}

/** With a value of the earlier call. */
interface CallCondition {
  path: ValuePath;
  op: CallComparison;
  earlier: ValuePath;
}

export interface FlowConditions {
  constants: ConstantCondition[];
  compared: CallCondition[];
}

interface ConditionDoc {
  path: string;
  op: OpName;
  value?: unknown;
}

const REFERENCE = /^\$after(?=\.(args|result)(?:$|[.[]))\./;

/** Path in the earlier call; undefined for a constant, and null for a text that begins like a path but is none. */
export function earlierPath(value: unknown): ValuePath<"args" | "result"> | undefined | null {
  if (typeof value !== "string" || !/^\$after(?=$|[.[])/.test(value)) return undefined;
  return REFERENCE.test(value) ? (tryPath(`$${value.slice("$after.".length)}`) ?? null) : null;
}

export function isCallComparison(op: string): op is CallComparison {
  return (CALL_COMPARISONS as readonly string[]).includes(op);
}

/** Compiles conditions that the policy check has accepted. */
export function compileFlowConditions(when: readonly ConditionDoc[]): FlowConditions {
  const conditions: FlowConditions = { constants: [], compared: [] };
  for (const { path: source, op, value } of when) {
    const path = tryPath(source)!;
    const earlier = earlierPath(value);
    if (earlier) conditions.compared.push({ path, op: op as CallComparison, earlier });
    else {
      const { whenMissing, compile } = COMPARISON_OPS[op];
      conditions.constants.push({ path, whenMissing, compare: compile((value ?? null) as JsonValue) });
    }
  }
  return conditions;
}

/** True unless a constant condition is false. A value that cannot be compared counts against the call. */
export function constantsHold({ constants }: FlowConditions, args: JsonValue): boolean {
  return constants.every(({ path, whenMissing, compare }) => {
    const actual = readPath(path, { args, result: undefined });
    return actual === undefined ? whenMissing : compare(actual) !== false;
  });
}

/** The latest call for which all conditions hold. A missing value, or one of another type, counts against the call. */
export function findRestricting(
  { compared }: FlowConditions,
  { own, calls }: ComparedCalls,
): EarlierCall | undefined {
  return calls.findLast(({ values }) =>
    compared.every(({ path, op, earlier }) => holds(op, own[path.source], values[earlier.source])),
  );
}

const ORDERS: { [op in CallComparison]?: (own: number, earlier: number) => boolean } = {
  gt: (own, earlier) => own > earlier,
  gte: (own, earlier) => own >= earlier,
  lt: (own, earlier) => own < earlier,
  lte: (own, earlier) => own <= earlier,
};

function holds(op: CallComparison, own: SeenValue | undefined, earlier: SeenValue | undefined): boolean {
  if (own === undefined || earlier === undefined || own.type !== earlier.type) return true;
  const order = ORDERS[op];
  if (order === undefined) return (own.hash === earlier.hash) === (op === "eq");
  return own.number === undefined || earlier.number === undefined || order(own.number, earlier.number);
}

interface SeeOptions {
  hash: (value: JsonValue) => string;
  /** True for paths that the manifest masks. */
  isMasked: (path: ValuePath) => boolean;
}

/** Reads the values at these paths that are in the call. */
export function seeValues(
  paths: readonly { path: ValuePath; ordered: boolean }[],
  call: { args: JsonValue | undefined; result: JsonValue | undefined },
  { hash, isMasked }: SeeOptions,
): { [path: string]: SeenValue } {
  const seen: { [path: string]: SeenValue } = {};
  for (const { path, ordered } of paths) {
    const value = readPath(path, call);
    if (value === undefined) continue;
    const shown = ordered && typeof value === "number" && !isMasked(path) ? { number: value } : {};
    seen[path.source] = { type: typeOf(value), hash: hash(value), ...seen[path.source], ...shown };
  }
  return seen;
}

/** Paths that the conditions read in the later call. */
export function ownPaths({ compared }: FlowConditions): { path: ValuePath; ordered: boolean }[] {
  return compared.map(({ path, op }) => ({ path, ordered: ORDERS[op] !== undefined }));
}

/** Paths that the conditions read in the earlier call, in its arguments or its result. */
export function earlierPaths(
  { compared }: FlowConditions,
  root: "args" | "result",
): { path: ValuePath; ordered: boolean }[] {
  return compared
    .filter(({ earlier }) => earlier.root === root)
    .map(({ earlier, op }) => ({ path: earlier, ordered: ORDERS[op] !== undefined }));
}
