/** Grants: standing approvals for calls that match their terms, limited in time and number of uses. */

import { invalidError } from "../../kernel/errors.ts";
import { isJsonObject, type JsonValue, parseJson } from "../../kernel/json/json.ts";
import { parsePath, readPath } from "../../kernel/paths.ts";
import type { PolicyCondition } from "../../rules/policy/compile.ts";
import { COMPARISON_OPS, type OpName } from "../../rules/policy/ops/table.ts";
import { isInForce } from "../expiry.ts";
import type { StoredPrincipal } from "../roles.ts";
import type { StoredSignature } from "../signing/payload.ts";

export interface GrantMatch {
  tool: string;
  actor: string;
  /** For `tenant` and `environment`, null means any, and an empty string means runs without one. */
  tenant: string | null;
  environment: string | null;
}

export interface GrantCondition {
  path: string;
  op: OpName;
  value?: JsonValue | undefined;
}

/** Terms that the giver chooses; the service maintains the other fields of a grant. */
export interface GrantTerms {
  match: GrantMatch;
  /** Ids of policy rules that need no further approval for covered calls. */
  rules: string[];
  when: GrantCondition[];
  /** Exhaustive list of the arguments that a covered call can have. If absent, other arguments are allowed. */
  args_only?: string[] | undefined;
  max_uses: number;
  budget: { path: string; max: number } | null;
  irreversible: boolean;
}

export interface GrantDoc extends GrantTerms {
  id: string;
  reason: string;
  by: string;
  created_ms: number;
  expires_ms: number;
  uses: number;
  spent: number;
  revoked_ms: number | null;
  /** Internal fields, absent from listings. */
  internal: {
    giver: StoredPrincipal;
    /** Given at the command line by a local user, so no key of the giver can expire. */
    at_the_data: boolean;
    /** Signature of the giver, if one was required or given. */
    signature?: StoredSignature | undefined;
    /** Delegations that the giver used. Each counts while it is active. */
    delegations: string[];
  };
}

export type GrantView = Omit<GrantDoc, "internal">;

/** Public view of a grant. Condition values come from calls, so only users who can decide calls see them. */
export function grantView({ internal: _internal, ...view }: GrantDoc, with_values: boolean): GrantView {
  return with_values ? view : { ...view, when: view.when.map(({ path, op }) => ({ path, op })) };
}

type GrantLimits = Pick<GrantDoc, "revoked_ms" | "expires_ms" | "uses" | "max_uses">;

/** True if the grant is not revoked, expired or used up. Does not check its giver's authority. */
export function isGrantUsable(grant: GrantLimits, now: number): boolean {
  return isInForce(grant, now) && !isUsedUp(grant);
}

export function isUsedUp({ uses, max_uses }: Pick<GrantLimits, "uses" | "max_uses">): boolean {
  return uses >= max_uses;
}

/** State of a grant in words, for people. */
export function grantState(grant: GrantLimits, now: number): "active" | "revoked" | "used up" | "expired" {
  if (isGrantUsable(grant, now)) return "active";
  if (grant.revoked_ms !== null) return "revoked";
  return isUsedUp(grant) ? "used up" : "expired";
}

const compiled = new WeakMap<readonly GrantCondition[], PolicyCondition[]>();

/** True only if every condition holds. A missing or incomparable value fails its condition. */
export function conditionsHold(when: readonly GrantCondition[], args: JsonValue): boolean {
  let conditions = compiled.get(when);
  if (conditions === undefined) {
    conditions = when.map(({ path, op, value }) => ({
      path: parsePath(path),
      whenMissing: COMPARISON_OPS[op].whenMissing,
      compare: COMPARISON_OPS[op].compile(value ?? null),
    }));
    compiled.set(when, conditions);
  }
  return conditions.every(({ path, whenMissing, compare }) => {
    const actual = readPath(path, { args, result: undefined });
    return (actual === undefined ? whenMissing : compare(actual)) === true;
  });
}

/** True if the call has only arguments that the grant lists. */
export function hasOnlyArgs({ args_only }: Pick<GrantTerms, "args_only">, args: JsonValue): boolean {
  if (args_only === undefined) return true;
  return isJsonObject(args) && Object.keys(args).every((name) => args_only.includes(name));
}

/** Amount that the call takes from the budget. Null if it is missing, negative or not a number. */
export function budgetAmount({ budget }: Pick<GrantTerms, "budget">, args: JsonValue): number | null {
  if (budget === null) return 0;
  const value = readPath(parsePath(budget.path), { args, result: undefined });
  return typeof value === "number" && value >= 0 ? value : null;
}

/** Parses a one-line condition such as `$args.currency eq EUR`. The value is JSON; a plain word is a string. */
export function parseGrantCondition(line: string): GrantCondition {
  const [, path, op, value] = /^(\S+)\s+(\S+)(?:\s+(.+))?$/s.exec(line.trim()) ?? [];
  if (path === undefined || op === undefined)
    throw invalidError("when: write <path> <op> <value>, such as '$args.amount lte 50'");
  // A later check reports an unknown op, together with all other problems.
  const condition = { path, op: op as OpName };
  return value === undefined ? condition : { ...condition, value: jsonOrWord(value) };
}

/** Splits comma-separated names. */
export function splitNames(text: string): string[] {
  return text.split(",").flatMap((name) => name.trim() || []);
}

function jsonOrWord(text: string): JsonValue {
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}
