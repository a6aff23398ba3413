/**
 * `contains` and `not_contains`: a text within a text, or a value within a list. In a list, an element
 * of another type than the operand may hide it, so unless the operand is found the list cannot be compared.
 */
import { same } from "./equal.ts";
import { negatedOp, type Op } from "./op.ts";

export const contains: Op = {
  whenMissing: false,
  operandProblem: (value) => {
    if (value === undefined) return "is missing; write the text or value to look for";
    return value === "" ? "must not be empty, as every text contains nothing" : null;
  },
  compile: (operand) => (actual) => {
    if (typeof actual === "string") return typeof operand === "string" ? actual.includes(operand) : undefined;
    if (!Array.isArray(actual)) return undefined;
    const answers = actual.map((item) => same(operand, item));
    if (answers.includes(true)) return true;
    return answers.includes(undefined) ? undefined : false;
  },
};

export const notContains: Op = negatedOp(contains);
