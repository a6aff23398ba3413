/**
 * `eq` and `ne`: equality of JSON values. Many tools treat `"500"` and `500` alike, so values of different types are
 * not comparable, which counts against the call. Null is the exception, since no other value can mean it.
 */
import { toCanonicalJson } from "../../../kernel/json/canonical.ts";
import type { JsonValue } from "../../../kernel/json/json.ts";
import { type ComparisonOp, negatedOp } from "./op.ts";

export function typeOf(value: JsonValue): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

export function jsonEquals(operand: JsonValue, actual: JsonValue): boolean | undefined {
  if (operand === actual) return true;
  if (operand === null || actual === null) return false;
  if (typeOf(operand) !== typeOf(actual)) return undefined;
  if (typeof operand !== "object") return false;
  return toCanonicalJson(operand) === toCanonicalJson(actual);
}

export const eqOp: ComparisonOp = {
  whenMissing: false,
  operandProblem: (value) => (value === undefined ? "is missing; write the value to compare with" : null),
  compile: (operand) => (actual) => jsonEquals(operand, actual),
};

export const neOp: ComparisonOp = negatedOp(eqOp);
