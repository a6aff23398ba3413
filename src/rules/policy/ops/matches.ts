/** `matches` and `not_matches`: a regular expression found anywhere in a text; anchor it with ^ and $. */
import { compilePattern, patternProblem } from "../pattern.ts";
import { type ComparisonOp, negatedOp } from "./op.ts";

export const matchesOp: ComparisonOp = {
  whenMissing: false,
  operandProblem: (value) => {
    if (value === undefined) return "is missing; write a regular expression";
    if (typeof value !== "string" || value === "") return "must be a regular expression as text";
    return patternProblem(value);
  },
  compile: (operand) => {
    const pattern = compilePattern(operand as string);
    return (actual) => (typeof actual === "string" ? pattern.test(actual) : undefined);
  },
};

export const notMatchesOp: ComparisonOp = negatedOp(matchesOp);
