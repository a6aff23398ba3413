/** `in` and `not_in`: whether the value is one of a list that the policy gives. */
import type { Json } from "../../../kernel/json.ts";
import { same } from "./equal.ts";
import { negatedOp, type Op } from "./op.ts";

export const isIn: Op = {
  whenMissing: false,
  operandProblem: (value) => {
    if (value === undefined) return "is missing; write a list of values";
    return Array.isArray(value) && value.length > 0 ? null : "must be a list with at least one value";
  },
  compile: (operand) => {
    const list = operand as Json[];
    const plain = new Set<Json>(list.filter((item) => item === null || typeof item !== "object"));
    // Anything can be compared with null, so a null in the list says nothing about the types meant.
    const typed = list.filter((item) => item !== null);
    return (actual) => {
      if (plain.has(actual)) return true;
      if (actual === null || typed.length === 0) return false;
      const answers = typed.map((item) => same(item, actual));
      if (answers.includes(true)) return true;
      // Comparable with one of them is enough: a list may mix types on purpose.
      return answers.includes(false) ? false : undefined;
    };
  },
};

export const notIn: Op = negatedOp(isIn);
