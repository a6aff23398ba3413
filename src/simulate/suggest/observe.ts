/**
 * Collects statistics of each agent and tool: number of calls, runs and peaks. Peaks are counted as limits and budgets
 * count, so that a limit above a peak would not have blocked any of its calls.
 */
import { isJsonObject, type JsonValue } from "../../kernel/json/json.ts";
import { type CounterDoc, chargedCounter, usedIn } from "../../rules/policy/checks/counters.ts";
import type { HistoricCall } from "../recorded-call.ts";

export const LIMIT_WINDOW = { text: "1h", ms: 3_600_000 };
export const BUDGET_WINDOW = { text: "1d", ms: 86_400_000 };

/** Numeric argument that means an amount. */
export interface AmountUse {
  calls: number;
  total: number;
  largest: number;
  /** Largest value among approved calls. */
  largest_approved: number | null;
  peak: number;
  counter: CounterDoc;
}

/** Accepted calls of one tool by one actor. */
export interface ToolUse {
  actor: string;
  tool: string;
  calls: number;
  succeeded: number;
  approved: number;
  runs: Set<string>;
  peak: number;
  counter: CounterDoc;
  amounts: Map<string, AmountUse>;
}

export class UsageObservation {
  readonly uses = new Map<string, ToolUse>();
  /** All observed calls, including blocked ones. */
  calls = 0;
  accepted = 0;
  first_ms = Number.POSITIVE_INFINITY;
  readonly runs = new Map<string, string>();

  add(call: HistoricCall): void {
    this.calls++;
    this.first_ms = Math.min(this.first_ms, call.captured_ms);
    this.runs.set(call.run_id, call.actor);
    if (call.step === null) return;
    this.accepted++;
    const use = this.useOf(call);
    use.calls++;
    use.runs.add(call.run_id);
    if (call.outcome === "succeeded") use.succeeded++;
    if (call.approval_used) use.approved++;
    use.counter = chargedCounter(use.counter, LIMIT_WINDOW.ms, call.captured_ms, 1);
    use.peak = Math.max(use.peak, usedIn(use.counter, LIMIT_WINDOW.ms, call.captured_ms));
    for (const [path, value] of amountsIn(call.args)) addAmount(use, path, value, call);
  }

  private useOf({ actor, tool }: HistoricCall): ToolUse {
    const key = JSON.stringify([actor, tool]);
    let use = this.uses.get(key);
    if (use === undefined) {
      const [runs, amounts] = [new Set<string>(), new Map<string, AmountUse>()];
      const none = { calls: 0, succeeded: 0, approved: 0, peak: 0, counter: { buckets: [] } };
      use = { actor, tool, ...none, runs, amounts };
      this.uses.set(key, use);
    }
    return use;
  }
}

function addAmount(use: ToolUse, path: string, value: number, call: HistoricCall): void {
  let amount = use.amounts.get(path);
  if (amount === undefined) {
    if (use.amounts.size >= MAX_AMOUNTS) return;
    amount = { calls: 0, total: 0, largest: 0, largest_approved: null, peak: 0, counter: { buckets: [] } };
    use.amounts.set(path, amount);
  }
  amount.calls++;
  amount.total += value;
  amount.largest = Math.max(amount.largest, value);
  if (call.approval_used) amount.largest_approved = Math.max(amount.largest_approved ?? 0, value);
  if (value > 0) amount.counter = chargedCounter(amount.counter, BUDGET_WINDOW.ms, call.captured_ms, value);
  amount.peak = Math.max(amount.peak, usedIn(amount.counter, BUDGET_WINDOW.ms, call.captured_ms));
}

/** Maximum per tool. */
const MAX_AMOUNTS = 20;
const DEEPEST = 3;
/** Names of amounts that can be summed in a budget, unlike line numbers or ids. */
const ADDS_UP =
  /(?:^|_)(?:amount|total|sum|price|cost|fee|value|quantity|qty|count|cents|units|budget|spend|bytes|rows|size)(?:_|$)/;

function amountsIn(args: JsonValue): [path: string, value: number][] {
  const found: [string, number][] = [];
  const walk = (value: JsonValue, path: string, depth: number) => {
    if (!isJsonObject(value)) return;
    for (const [name, part] of Object.entries(value)) {
      const here = below(path, name);
      if (here.length > MAX_PATH_LENGTH) continue;
      if (typeof part === "number") {
        if (part >= 0 && ADDS_UP.test(snake(name))) found.push([here, part]);
      } else if (depth < DEEPEST) walk(part, here, depth + 1);
    }
  };
  walk(args, "$args", 1);
  return found;
}

/** Maximum path length in a policy. */
const MAX_PATH_LENGTH = 512;

function below(path: string, name: string): string {
  return /^[A-Za-z_][\w-]*$/.test(name) ? `${path}.${name}` : `${path}[${JSON.stringify(name)}]`;
}

function snake(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .replace(/\W+/g, "_")
    .toLowerCase();
}
