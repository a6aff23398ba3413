/**
 * `eq` and `ne`: equality of JSON values. Values of different types are not simply unequal: many tools
 * read `"500"` and `500` alike, so such a pair cannot be compared and counts against the call. Null is
 * the exception, since it spells no other value.
 */
import { canonical } from "../../../kernel/canonical.ts";
import type { Json } from "../../../kernel/json.ts";
import { negatedOp, type Op } from "./op.ts";

export function typeOf(value: Json): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

export function same(operand: Json, actual: Json): boolean | undefined {
  if (operand === actual) return true;
  if (operand === null || actual === null) return false;
  if (typeOf(operand) !== typeOf(actual)) return undefined;
  if (typeof operand !== "object") return false;
  return canonical(operand) === canonical(actual);
}

export const eq: Op = {
  whenMissing: false,
  operandProblem: (value) => (value === undefined ? "is missing; write the value to compare with" : null),
  compile: (operand) => (actual) => same(operand, actual),
};

export const ne: Op = negatedOp(eq);
