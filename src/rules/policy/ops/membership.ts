/** `in` and `not_in`: membership in the policy's list. */
import type { JsonValue } from "../../../kernel/json/json.ts";
import { jsonEquals } from "./equal.ts";
import { type ComparisonOp, negatedOp } from "./op.ts";

export const isIn: ComparisonOp = {
  whenMissing: false,
  operandProblem: (value) => {
    if (value === undefined) return "is missing; write a list of values";
    return Array.isArray(value) && value.length > 0 ? null : "must be a list with at least one value";
  },
  compile: (operand) => {
    const list = operand as JsonValue[];
    const plain = new Set<JsonValue>(list.filter((item) => item === null || typeof item !== "object"));
    // Null is comparable with anything, so a null in the list does not determine its type.
    const typed = list.filter((item) => item !== null);
    return (actual) => {
      if (plain.has(actual)) return true;
      if (actual === null || typed.length === 0) return false;
      const answers = typed.map((item) => jsonEquals(item, actual));
      if (answers.includes(true)) return true;
      // One comparable element is enough, since a list can mix types on purpose.
      return answers.includes(false) ? false : undefined;
    };
  },
};

export const notIn: ComparisonOp = negatedOp(isIn);
