/** What a comparison operator is: how it checks the operand a policy gives and compares with it. */
import type { Json } from "../../../kernel/json.ts";

/** Undefined: the value is there but cannot be compared, which counts against the call. */
export type Compare = (actual: Json) => boolean | undefined;

export interface Op {
  /** What is wrong with the operand, said so that the author can mend it; null when it is fine. */
  operandProblem(value: Json | undefined): string | null;
  /** The comparison with an operand that `operandProblem` accepts. */
  compile(value: Json): Compare;
  /** What a missing path gives; every op but `absent` is then false. */
  readonly whenMissing: boolean;
}

/** The opposite answer; what cannot be compared stays so. */
function negated(compare: Compare): Compare {
  return (actual) => {
    const answer = compare(actual);
    return answer === undefined ? undefined : !answer;
  };
}

export function negatedOp(op: Op): Op {
  return { ...op, compile: (value) => negated(op.compile(value)) };
}
