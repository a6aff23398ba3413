/** Every comparison operator by the name it has in a policy. A new one is a file, a line here, and YAML cases. */
import { endsWith, startsWith } from "./affix.ts";
import { contains, notContains } from "./contain.ts";
import { eq, ne } from "./equal.ts";
import { matches, notMatches } from "./matches.ts";
import { isIn, notIn } from "./membership.ts";
import type { Op } from "./op.ts";
import { gt, gte, lt, lte } from "./order.ts";
import { absent, exists } from "./presence.ts";

export const OPS = {
  eq,
  ne,
  gt,
  gte,
  lt,
  lte,
  in: isIn,
  not_in: notIn,
  contains,
  not_contains: notContains,
  starts_with: startsWith,
  ends_with: endsWith,
  matches,
  not_matches: notMatches,
  exists,
  absent,
} as const satisfies Record<string, Op>;

export type OpName = keyof typeof OPS;
export const OP_NAMES = Object.keys(OPS) as [OpName, ...OpName[]];
