/** Grants: a person's decision on calls like these, given ahead, for a while and for so many of them. */
import { invalid } from "../kernel/errors.ts";
import { isJsonObject, type Json, parseJson } from "../kernel/json.ts";
import { parsePath, readPath } from "../kernel/paths.ts";
import type { Condition } from "./policy/compile.ts";
import { OPS, type OpName } from "./policy/ops/table.ts";
import type { KeptPrincipal } from "./roles.ts";

export interface GrantMatch {
  tool: string;
  actor: string;
  /** Of `tenant` and `environment`: null for any, empty for runs that name none. */
  tenant: string | null;
  environment: string | null;
}

export interface GrantCondition {
  path: string;
  op: OpName;
  value?: Json | undefined;
}

/** What whoever gives it says; the rest of a grant is kept by the service. */
export interface GrantTerms {
  match: GrantMatch;
  /** Ids of the policy's rules whose need for approval it lifts. */
  rules: string[];
  when: GrantCondition[];
  /** The arguments that a covered call may have; without it others may be there, too. */
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
  /** Working facts that listings leave out. */
  internal: {
    giver: KeptPrincipal;
    /** Given by whoever holds the data, at the command line: no key stands behind it that could end. */
    at_the_data: boolean;
    /** Loans that its giver had when it was given; each counts for as long as it is in force. */
    delegations: string[];
  };
}

export type GrantView = Omit<GrantDoc, "internal">;

/** The values of conditions come from calls: they are for those who judge calls. */
export function grantView({ internal: _internal, ...view }: GrantDoc, with_values: boolean): GrantView {
  return with_values ? view : { ...view, when: view.when.map(({ path, op }) => ({ path, op })) };
}

/** Whether it can still be used by any run, as far as it alone says. */
export function isLive(
  grant: Pick<GrantDoc, "revoked_ms" | "expires_ms" | "uses" | "max_uses">,
  now: number,
) {
  return grant.revoked_ms === null && now < grant.expires_ms && grant.uses < grant.max_uses;
}

const compiled = new WeakMap<readonly GrantCondition[], Condition[]>();

/** What is missing or cannot be compared is not covered: only a plain yes to each condition is one. */
export function conditionsHold(when: readonly GrantCondition[], args: Json): boolean {
  let conditions = compiled.get(when);
  if (conditions === undefined) {
    conditions = when.map(({ path, op, value }) => ({
      path: parsePath(path),
      whenMissing: OPS[op].whenMissing,
      compare: OPS[op].compile(value ?? null),
    }));
    compiled.set(when, conditions);
  }
  return conditions.every(({ path, whenMissing, compare }) => {
    const actual = readPath(path, { args, result: undefined });
    return (actual === undefined ? whenMissing : compare(actual)) === true;
  });
}

/** Whether the call has no argument but those that the grant lists. */
export function hasOnlyArgs({ args_only }: Pick<GrantTerms, "args_only">, args: Json): boolean {
  if (args_only === undefined) return true;
  return isJsonObject(args) && Object.keys(args).every((name) => args_only.includes(name));
}

/** What the call takes out of the budget; null where that is missing, negative or no number. */
export function amountOf({ budget }: Pick<GrantTerms, "budget">, args: Json): number | null {
  if (budget === null) return 0;
  const value = readPath(parsePath(budget.path), { args, result: undefined });
  return typeof value === "number" && value >= 0 ? value : null;
}

/** A condition as people write it in one line, `$args.currency eq EUR`: the value is JSON, a plain word a string. */
export function readCondition(line: string): GrantCondition {
  const [, path, op, value] = /^(\S+)\s+(\S+)(?:\s+(.+))?$/s.exec(line.trim()) ?? [];
  if (path === undefined || op === undefined)
    throw invalid("when: write <path> <op> <value>, such as '$args.amount lte 50'");
  // Whether there is such an op is said with everything else that is wrong.
  const condition = { path, op: op as OpName };
  return value === undefined ? condition : { ...condition, value: jsonOrWord(value) };
}

/** Names with commas between them, as people write several in one field. */
export function namesIn(text: string): string[] {
  return text.split(",").flatMap((name) => name.trim() || []);
}

function jsonOrWord(text: string): Json {
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}
