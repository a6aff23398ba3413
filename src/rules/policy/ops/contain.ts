/**
 * `contains` and `not_contains`: text within text, or a value within a list. An element of another type could mean the
 * operand, so a list with such an element and without the operand is not comparable.
 */
import { jsonEquals } from "./equal.ts";
import { type ComparisonOp, negatedOp } from "./op.ts";

export const containsOp: ComparisonOp = {
  whenMissing: false,
  operandProblem: (value) => {
    if (value === undefined) return "is missing; write the text or value to look for";
    return value === "" ? "must not be empty, as every text contains nothing" : null;
  },
  compile: (operand) => (actual) => {
    if (typeof actual === "string") return typeof operand === "string" ? actual.includes(operand) : undefined;
    if (!Array.isArray(actual)) return undefined;
    const answers = actual.map((item) => jsonEquals(operand, item));
    if (answers.includes(true)) return true;
    return answers.includes(undefined) ? undefined : false;
  },
};

export const notContainsOp: ComparisonOp = negatedOp(containsOp);
