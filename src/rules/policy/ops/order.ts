/** `gt`, `gte`, `lt`, `lte`: numbers only. A number written as text is not comparable. */
import type { ComparisonOp } from "./op.ts";

function order(holds: (actual: number, operand: number) => boolean): ComparisonOp {
  return {
    whenMissing: false,
    operandProblem: (value) => {
      if (value === undefined) return "is missing; write the number to compare with";
      return typeof value === "number" ? null : "must be a number (without quotes)";
    },
    compile: (operand) => (actual) =>
      typeof actual === "number" ? holds(actual, operand as number) : undefined,
  };
}

export const gtOp = order((actual, operand) => actual > operand);
export const gteOp = order((actual, operand) => actual >= operand);
export const ltOp = order((actual, operand) => actual < operand);
export const lteOp = order((actual, operand) => actual <= operand);
