/** Comparison operator: checks its operand and compares values with it. */
import type { JsonValue } from "../../../kernel/json/json.ts";

/** Undefined means that the value exists but is not comparable, which counts against the call. */
export type CompareFn = (actual: JsonValue) => boolean | undefined;

export interface ComparisonOp {
  /** Describes for the author how to fix the operand; null if it is valid. */
  operandProblem(value: JsonValue | undefined): string | null;
  /** Builds the comparison for an operand that `operandProblem` accepts. */
  compile(value: JsonValue): CompareFn;
  /** Result for a missing path: false for every op except `absent`. */
  readonly whenMissing: boolean;
}

/** Negates a comparison; incomparable values stay incomparable. */
function negated(compare: CompareFn): CompareFn {
  return (actual) => {
    const answer = compare(actual);
    return answer === undefined ? undefined : !answer;
  };
}

export function negatedOp(op: ComparisonOp): ComparisonOp {
  return { ...op, compile: (value) => negated(op.compile(value)) };
}
