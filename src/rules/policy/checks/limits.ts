/**
 * Limits stage: number of calls, and sums of a number in their arguments, within a sliding window. It reads counters
 * and returns findings and the counters to write if the call is accepted.
 */
import { readPath } from "../../../kernel/paths.ts";
import type { PolicyCall } from "../call.ts";
import type { CompiledPolicy, PolicyBudget, PolicyLimit } from "../compile.ts";
import { type PolicyFinding, restrictionFinding } from "../finding.ts";
import type { CounterScope } from "../schema.ts";
import { type CounterDoc, chargedCounter, type RefundableCharge, usedIn } from "./counters.ts";
import { sumAmounts } from "./decimal.ts";

export type { CounterDoc } from "./counters.ts";

export interface CounterNeed {
  /** `limit:<id>:<per>:<value>`; budgets and flows have their own prefix. */
  key: string;
  kind: "limit" | "budget" | "flow";
  id: string;
}

export interface CounterCharge {
  key: string;
  doc: CounterDoc;
  /** Charge that an undo of the call refunds; absent unless the entry has `refund`. */
  refund?: RefundableCharge;
}

function chargeOf(
  key: string,
  doc: CounterDoc | undefined,
  { window_ms, refund }: PolicyLimit,
  now_ms: number,
  amount: number,
): CounterCharge {
  const after = chargedCounter(doc, window_ms, now_ms, amount, refund);
  if (!refund) return { key, doc: after };
  // If the clock went back, the charge counts from the latest bucket on.
  const at_ms = after.buckets[after.buckets.length - 1]![0];
  return { key, doc: after, refund: { key, at_ms, amount } };
}

const PER_VALUE: Record<CounterScope, (call: PolicyCall) => string> = {
  run: (call) => call.counted_run ?? call.run_id,
  actor: (call) => call.actor,
  tenant: (call) => call.tenant ?? "",
  tool: (call) => call.tool,
  global: () => "",
};

function keyOf(kind: CounterNeed["kind"], { id, per }: PolicyLimit, call: PolicyCall): string {
  return `${kind}:${id}:${per}:${PER_VALUE[per](call)}`;
}

/** Limit and budget counters that a decision on this call reads. */
export function limitKeys(policy: CompiledPolicy, call: PolicyCall): CounterNeed[] {
  const needs = (kind: "limit" | "budget", entries: readonly PolicyLimit[]) =>
    entries.map((entry): CounterNeed => ({ key: keyOf(kind, entry, call), kind, id: entry.id }));
  return [...needs("limit", policy.limits.matching(call)), ...needs("budget", policy.budgets.matching(call))];
}

export function checkLimits(
  policy: CompiledPolicy,
  call: PolicyCall,
  counters: ReadonlyMap<string, CounterDoc>,
  now_ms: number,
): { findings: PolicyFinding[]; charges: CounterCharge[] } {
  const findings: PolicyFinding[] = [];
  const charges: CounterCharge[] = [];
  for (const limit of policy.limits.matching(call)) {
    const key = keyOf("limit", limit, call);
    const doc = counters.get(key);
    if (usedIn(doc, limit.window_ms, now_ms) + 1 > limit.max) {
      findings.push(
        restrictionFinding("limit", limit, `limit ${limit.id}: ${bound(limit, "calls")} are used up`),
      );
    }
    charges.push(chargeOf(key, doc, limit, now_ms, 1));
  }
  for (const budget of policy.budgets.matching(call)) {
    const key = keyOf("budget", budget, call);
    const doc = counters.get(key);
    const amount = amountOf(budget, call);
    const finding = checkBudget(budget, amount, usedIn(doc, budget.window_ms, now_ms));
    if (finding !== null) findings.push(finding);
    // A call without a known amount is not charged; a finding already counts against it.
    if (amount !== null && amount > 0) charges.push(chargeOf(key, doc, budget, now_ms, amount));
  }
  return { findings, charges };
}

/** Null without a number. A negative amount counts as 0, because spending less is not a refund. */
function amountOf(budget: PolicyBudget, call: PolicyCall): number | null {
  const value = readPath(budget.path, { args: call.args, result: undefined });
  return typeof value === "number" ? Math.max(0, value) : null;
}

function checkBudget(budget: PolicyBudget, amount: number | null, used: number): PolicyFinding | null {
  if (amount === null) {
    const finding = restrictionFinding("budget", budget, `budget ${budget.id}`);
    return { ...finding, reason: `${finding.reason}; could not compare ${budget.path.source}` };
  }
  const after = sumAmounts(used, amount);
  if (after > budget.max) {
    return restrictionFinding(
      "budget",
      budget,
      `budget ${budget.id}: this call would exceed ${bound(budget, "")}`,
    );
  }
  if (budget.warn_at === null || shareOf(after, budget.max) < budget.warn_at) return null;
  const share = `${Number((budget.warn_at * 100).toFixed(2))}%`;
  const reason = `budget ${budget.id}: ${share} of ${bound(budget, "")} is reached`;
  return { stage: "budget", action: "warn", reason, rule: budget.id };
}

/** Text such as `20 calls per actor in 1h`. */
function bound({ max, per, window }: PolicyLimit, unit: string): string {
  const whose = per === "global" ? "in all" : `per ${per}`;
  return `${max}${unit === "" ? "" : ` ${unit}`} ${whose} in ${window}`;
}

/** Rounded to 12 digits, so that 10.1 of 100 is 0.101 and reaches a `warn_at` of 0.101. */
function shareOf(used: number, max: number): number {
  if (max === 0) return used > 0 ? 1 : 0;
  return Number((used / max).toPrecision(12));
}

/** Default of `warn_at`. */
const NEAR = 0.9;

export interface BudgetUse {
  id: string;
  per: CounterScope;
  /** The run, actor, tenant or tool that the budget belongs to; empty for a global budget. */
  value: string;
  used: number;
  max: number;
  /** `used` as a share of `max`. */
  share: number;
  /** At or above `warn_at`, which defaults to 0.9. */
  near: boolean;
}

/** Use of each budget, from the stored counters, fullest first. */
export function budgetUse(
  policy: CompiledPolicy,
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
