/** `exists` and `absent`: presence of a value at the path; null is a value. */
import type { JsonValue } from "../../../kernel/json/json.ts";
import type { ComparisonOp } from "./op.ts";

const noOperand = (value: JsonValue | undefined): string | null =>
  value === undefined || value === true
    ? null
    : "is not used by this op; remove it (or write the opposite op)";

export const existsOp: ComparisonOp = {
  whenMissing: false,
  operandProblem: noOperand,
  compile: () => () => true,
};
export const absentOp: ComparisonOp = {
  whenMissing: true,
  operandProblem: noOperand,
  compile: () => () => false,
};
