/**
 * The limits stage: how many calls, and how much of a number in their arguments, within a sliding
 * window. It reads counters, says what it finds, and returns the counters to write if the call goes ahead.
 */
import { readPath } from "../../kernel/paths.ts";
import type { PolicyCall } from "./call.ts";
import type { Budget, Limit, Policy } from "./compile.ts";
import { type CounterDoc, charged, type Refundable, usedIn } from "./counters.ts";
import { addUp } from "./decimal.ts";
import { type Finding, restricted } from "./finding.ts";
import type { Per } from "./schema.ts";

export type { CounterDoc } from "./counters.ts";

export interface CounterNeed {
  /** `limit:<id>:<per>:<value>`, and so for budgets and flows. */
  key: string;
  kind: "limit" | "budget" | "flow";
  id: string;
}

export interface Charge {
  key: string;
  doc: CounterDoc;
  /** What an undo of the call gives back; absent where the entry does not say `refund`. */
  refund?: Refundable;
}

function chargeOf(
  key: string,
  doc: CounterDoc | undefined,
  { window_ms, refund }: Limit,
  now_ms: number,
  amount: number,
): Charge {
  const after = charged(doc, window_ms, now_ms, amount, refund);
  if (!refund) return { key, doc: after };
  // Where the clock went back the charge counts from the latest one on.
  const at_ms = after.buckets[after.buckets.length - 1]![0];
  return { key, doc: after, refund: { key, at_ms, amount } };
}

const PER_VALUE: Record<Per, (call: PolicyCall) => string> = {
  run: (call) => call.run_id,
  actor: (call) => call.actor,
  tenant: (call) => call.tenant ?? "",
  tool: (call) => call.tool,
  global: () => "",
};

function keyOf(kind: CounterNeed["kind"], { id, per }: Limit, call: PolicyCall): string {
  return `${kind}:${id}:${per}:${PER_VALUE[per](call)}`;
}

/** The counters of limits and budgets that judging this call will read. */
export function limitKeys(policy: Policy, call: PolicyCall): CounterNeed[] {
  const needs = (kind: "limit" | "budget", entries: readonly Limit[]) =>
    entries.map((entry): CounterNeed => ({ key: keyOf(kind, entry, call), kind, id: entry.id }));
  return [...needs("limit", policy.limits.matching(call)), ...needs("budget", policy.budgets.matching(call))];
}

export function checkLimits(
  policy: Policy,
  call: PolicyCall,
  counters: ReadonlyMap<string, CounterDoc>,
  now_ms: number,
): { findings: Finding[]; charges: Charge[] } {
  const findings: Finding[] = [];
  const charges: Charge[] = [];
  for (const limit of policy.limits.matching(call)) {
    const key = keyOf("limit", limit, call);
    const doc = counters.get(key);
    if (usedIn(doc, limit.window_ms, now_ms) + 1 > limit.max) {
      findings.push(restricted("limit", limit, `limit ${limit.id}: ${bound(limit, "calls")} are used up`));
    }
    charges.push(chargeOf(key, doc, limit, now_ms, 1));
  }
  for (const budget of policy.budgets.matching(call)) {
    const key = keyOf("budget", budget, call);
    const doc = counters.get(key);
    const amount = amountOf(budget, call);
    const finding = checkBudget(budget, amount, usedIn(doc, budget.window_ms, now_ms));
    if (finding !== null) findings.push(finding);
    // A call whose amount is unknown can be charged nothing; it was held against the call instead.
    if (amount !== null && amount > 0) charges.push(chargeOf(key, doc, budget, now_ms, amount));
  }
  return { findings, charges };
}

/** Null when there is no number; a negative amount counts as nothing, since spending less is no refund. */
function amountOf(budget: Budget, call: PolicyCall): number | null {
  const value = readPath(budget.path, { args: call.args, result: undefined });
  return typeof value === "number" ? Math.max(0, value) : null;
}

function checkBudget(budget: Budget, amount: number | null, used: number): Finding | null {
  if (amount === null) {
    const finding = restricted("budget", budget, `budget ${budget.id}`);
    return { ...finding, reason: `${finding.reason}; could not compare ${budget.path.source}` };
  }
  const after = addUp(used, amount);
  if (after > budget.max) {
    return restricted("budget", budget, `budget ${budget.id}: this call would exceed ${bound(budget, "")}`);
  }
  if (budget.warn_at === null || shareOf(after, budget.max) < budget.warn_at) return null;
  const share = `${Number((budget.warn_at * 100).toFixed(2))}%`;
  const reason = `budget ${budget.id}: ${share} of ${bound(budget, "")} is reached`;
  return { stage: "budget", action: "warn", reason, rule: budget.id };
}

/** `20 calls per actor in 1h` */
function bound({ max, per, window }: Limit, unit: string): string {
  const whose = per === "global" ? "in all" : `per ${per}`;
  return `${max}${unit === "" ? "" : ` ${unit}`} ${whose} in ${window}`;
}

/** Rounded past what people write, so that 10.1 of 100 is 0.101 and a mark at 0.101 is reached. */
function shareOf(used: number, max: number): number {
  if (max === 0) return used > 0 ? 1 : 0;
  return Number((used / max).toPrecision(12));
}

/** When a budget without `warn_at` counts as nearly used up. */
const NEAR = 0.9;

export interface BudgetUse {
  id: string;
  per: Per;
  /** Whose budget: the run, actor, tenant or tool; empty for a global one. */
  value: string;
  used: number;
  max: number;
  /** `used` as a share of `max`. */
  share: number;
  /** At or past `warn_at`, or past nine tenths where the budget does not say. */
  near: boolean;
}

/** How far each budget of the policy is used, from the stored counters, fullest first. */
export function budgetUse(
  policy: Policy,
  counters: Iterable<readonly [string, CounterDoc]>,
  now_ms: number,
): BudgetUse[] {
  const budgets = new Map(policy.budgets.all().map((budget) => [budget.id, budget]));
  const out: BudgetUse[] = [];
  for (const [key, doc] of counters) {
    const [, id, per, value] = /^budget:([^:]+):([a-z]+):(.*)$/s.exec(key) ?? [];
    const budget = id === undefined ? undefined : budgets.get(id);
    if (budget === undefined || budget.per !== per) continue;
    const used = usedIn(doc, budget.window_ms, now_ms);
    const share = shareOf(used, budget.max);
    const near = share >= (budget.warn_at ?? NEAR);
    out.push({ id: budget.id, per: budget.per, value: value!, used, max: budget.max, share, near });
  }
  return out.sort((a, b) => b.share - a.share || a.id.localeCompare(b.id) || a.value.localeCompare(b.value));
}
