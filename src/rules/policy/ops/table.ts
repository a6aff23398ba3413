/** Comparison operators by their name in policies. To add one, add a file, a line here and YAML cases. */
import { endsWith, startsWith } from "./affix.ts";
import { containsOp, notContainsOp } from "./contain.ts";
import { eqOp, neOp } from "./equal.ts";
import { matchesOp, notMatchesOp } from "./matches.ts";
import { isIn, notIn } from "./membership.ts";
import type { ComparisonOp } from "./op.ts";
import { gteOp, gtOp, lteOp, ltOp } from "./order.ts";
import { absentOp, existsOp } from "./presence.ts";

export const COMPARISON_OPS = {
  eq: eqOp,
  ne: neOp,
  gt: gtOp,
  gte: gteOp,
  lt: ltOp,
  lte: lteOp,
  in: isIn,
  not_in: notIn,
  contains: containsOp,
  not_contains: notContainsOp,
  starts_with: startsWith,
  ends_with: endsWith,
  matches: matchesOp,
  not_matches: notMatchesOp,
  exists: existsOp,
  absent: absentOp,
} as const satisfies Record<string, ComparisonOp>;

export type OpName = keyof typeof COMPARISON_OPS;
export const OP_NAMES = Object.keys(COMPARISON_OPS) as [OpName, ...OpName[]];
