/** A policy diff that reads like a code review: what changed, because of what, for how many calls and runs. */
import type { Ruling } from "./past-call.ts";

/** The group of a call whose decision is now this one and was another. */
export const CHANGES = {
  block: "newly_blocked",
  needs_approval: "newly_needs_approval",
  allow: "newly_allowed",
} as const satisfies Record<Ruling, string>;
export type ChangeName = (typeof CHANGES)[Ruling];

export interface ReviewLine {
  change: ChangeName;
  /** What decided now (`rule big-refunds`); for a call that is newly allowed, what used to hold it. */
  by: string[];
  calls: number;
  runs: number;
  /** The first few of each. */
  run_ids: string[];
  tools: string[];
  reason: string | null;
}

interface ReviewedCall {
  run_id: string;
  tool: string;
  old: { reasons: string[] };
  new: { reasons: string[]; by: string[] };
}

interface Gathering {
  change: ChangeName;
  by: string[];
  calls: number;
  runs: Set<string>;
  tools: Set<string>;
  reason: string | null;
}

/** More causes than a person reads; what is beyond them is told as one. */
const MOST_CAUSES = 200;
const NAMED = 5;

export class Review {
  private readonly gathered = new Map<string, Gathering>();

  add(change: ChangeName, call: ReviewedCall): void {
    const allowed = change === "newly_allowed";
    const reasons = allowed ? call.old.reasons : call.new.reasons;
    const by = allowed ? [...new Set(reasons)] : call.new.by;
    const entry = this.entryFor(change, by);
    entry.calls++;
    entry.runs.add(call.run_id);
    entry.tools.add(call.tool);
    entry.reason ??= reasons[0] ?? null;
  }

  lines(): ReviewLine[] {
    const order = Object.values(CHANGES);
    return [...this.gathered.values()]
      .sort((a, b) => order.indexOf(a.change) - order.indexOf(b.change) || b.calls - a.calls)
      .map(({ runs, tools, ...entry }) => ({
        ...entry,
        runs: runs.size,
        run_ids: [...runs].slice(0, NAMED),
        tools: [...tools].slice(0, NAMED),
      }));
  }

  private entryFor(change: ChangeName, by: string[]): Gathering {
    const key = JSON.stringify([change, by]);
    const known = this.gathered.get(key);
    if (known !== undefined) return known;
    if (this.gathered.size >= MOST_CAUSES && by.length > 0) return this.entryFor(change, []);
    const fresh = { change, by, calls: 0, runs: new Set<string>(), tools: new Set<string>(), reason: null };
    this.gathered.set(key, fresh);
    return fresh;
  }
}
