/** `starts_with` and `ends_with`: text only. */
import type { ComparisonOp } from "./op.ts";

function affix(holds: (actual: string, operand: string) => boolean): ComparisonOp {
  return {
    whenMissing: false,
    operandProblem: (value) => {
      if (value === undefined) return "is missing; write the text to search for";
      return typeof value === "string" && value !== "" ? null : "must be a text that is not empty";
    },
    compile: (operand) => (actual) =>
      typeof actual === "string" ? holds(actual, operand as string) : undefined,
  };
}

export const startsWith = affix((actual, operand) => actual.startsWith(operand));
export const endsWith = affix((actual, operand) => actual.endsWith(operand));
