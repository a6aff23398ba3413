/**
 * What a history shows of each agent and tool: how often, in which runs, how much at once. Peaks are counted as the
 * policy's own limits and budgets count, so that a bound above a peak could not have refused what made it.
 */
import { isJsonObject, type Json } from "../../kernel/json.ts";
import { type CounterDoc, charged, usedIn } from "../../model/policy/counters.ts";
import type { PastCall } from "../past-call.ts";

export const LIMIT_WINDOW = { text: "1h", ms: 3_600_000 };
export const BUDGET_WINDOW = { text: "1d", ms: 86_400_000 };

/** A number in the arguments that speaks of an amount. */
export interface Amount {
  calls: number;
  total: number;
  largest: number;
  /** Of the calls that a person had approved. */
  largest_approved: number | null;
  peak: number;
  counter: CounterDoc;
}

/** The accepted calls of one tool by one actor. */
export interface ToolUse {
  actor: string;
  tool: string;
  calls: number;
  succeeded: number;
  approved: number;
  runs: Set<string>;
  peak: number;
  counter: CounterDoc;
  amounts: Map<string, Amount>;
}

export class Observation {
  readonly uses = new Map<string, ToolUse>();
  /** Every call that was looked at, refused ones included. */
  calls = 0;
  accepted = 0;
  first_ms = Number.POSITIVE_INFINITY;
  readonly runs = new Map<string, string>();

  add(call: PastCall): void {
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
    use.counter = charged(use.counter, LIMIT_WINDOW.ms, call.captured_ms, 1);
    use.peak = Math.max(use.peak, usedIn(use.counter, LIMIT_WINDOW.ms, call.captured_ms));
    for (const [path, value] of amountsIn(call.args)) addAmount(use, path, value, call);
  }

  private useOf({ actor, tool }: PastCall): ToolUse {
    const key = JSON.stringify([actor, tool]);
    let use = this.uses.get(key);
    if (use === undefined) {
      const [runs, amounts] = [new Set<string>(), new Map<string, Amount>()];
      const none = { calls: 0, succeeded: 0, approved: 0, peak: 0, counter: { buckets: [] } };
      use = { actor, tool, ...none, runs, amounts };
      this.uses.set(key, use);
    }
    return use;
  }
}

function addAmount(use: ToolUse, path: string, value: number, call: PastCall): void {
  let amount = use.amounts.get(path);
  if (amount === undefined) {
    if (use.amounts.size >= MOST_AMOUNTS) return;
    amount = { calls: 0, total: 0, largest: 0, largest_approved: null, peak: 0, counter: { buckets: [] } };
    use.amounts.set(path, amount);
  }
  amount.calls++;
  amount.total += value;
  amount.largest = Math.max(amount.largest, value);
  if (call.approval_used) amount.largest_approved = Math.max(amount.largest_approved ?? 0, value);
  if (value > 0) amount.counter = charged(amount.counter, BUDGET_WINDOW.ms, call.captured_ms, value);
  amount.peak = Math.max(amount.peak, usedIn(amount.counter, BUDGET_WINDOW.ms, call.captured_ms));
}

/** Of one tool. */
const MOST_AMOUNTS = 20;
const DEEPEST = 3;
/** A number is a budget's business where its name says that it adds up; a line number or an id does not. */
const ADDS_UP =
  /(?:^|_)(?:amount|total|sum|price|cost|fee|value|quantity|qty|count|cents|units|budget|spend|bytes|rows|size)(?:_|$)/;

function amountsIn(args: Json): [path: string, value: number][] {
  const found: [string, number][] = [];
  const walk = (value: Json, path: string, depth: number) => {
    if (!isJsonObject(value)) return;
    for (const [name, part] of Object.entries(value)) {
      const here = below(path, name);
      if (here.length > LONGEST_PATH) continue;
      if (typeof part === "number") {
        if (part >= 0 && ADDS_UP.test(snake(name))) found.push([here, part]);
      } else if (depth < DEEPEST) walk(part, here, depth + 1);
    }
  };
  walk(args, "$args", 1);
  return found;
}

/** That a policy takes. */
const LONGEST_PATH = 512;

function below(path: string, name: string): string {
  return /^[A-Za-z_][\w-]*$/.test(name) ? `${path}.${name}` : `${path}[${JSON.stringify(name)}]`;
}

function snake(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .replace(/\W+/g, "_")
    .toLowerCase();
}
