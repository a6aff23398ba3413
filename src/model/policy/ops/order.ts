/** `gt`, `gte`, `lt`, `lte`: numbers only. A number written as text cannot be compared. */
import type { Op } from "./op.ts";

function order(holds: (actual: number, operand: number) => boolean): Op {
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

export const gt = order((actual, operand) => actual > operand);
export const gte = order((actual, operand) => actual >= operand);
export const lt = order((actual, operand) => actual < operand);
export const lte = order((actual, operand) => actual <= operand);
