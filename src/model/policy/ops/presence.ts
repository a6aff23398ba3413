/** `exists` and `absent`: whether the path leads to a value at all; null is a value. */
import type { Json } from "../../../kernel/json.ts";
import type { Op } from "./op.ts";

const noOperand = (value: Json | undefined): string | null =>
  value === undefined || value === true
    ? null
    : "is not used by this op; remove it (or write the opposite op)";

export const exists: Op = { whenMissing: false, operandProblem: noOperand, compile: () => () => true };
export const absent: Op = { whenMissing: true, operandProblem: noOperand, compile: () => () => false };
