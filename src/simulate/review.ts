/** Summary of a policy change for reviewers: changed decisions with their cause, and the number of calls and runs. */
import type { PreviewDecision } from "./recorded-call.ts";

/** Group of a call by its new decision, if it changed. */
export const CHANGE_NAMES = {
  block: "newly_blocked",
  needs_approval: "newly_needs_approval",
  allow: "newly_allowed",
} as const satisfies Record<PreviewDecision, string>;
export type ChangeName = (typeof CHANGE_NAMES)[PreviewDecision];

export interface ReviewLine {
  change: ChangeName;
  /** Deciding entries (`rule big-refunds`). For a newly allowed call, the entries that decided before. */
  by: string[];
  calls: number;
  runs: number;
  /** First few of each. */
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

/** Maximum causes listed; the rest appears as one cause. */
const MAX_CAUSES = 200;
const NAMED = 5;

export class PolicyReview {
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
    const order = Object.values(CHANGE_NAMES);
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
    if (this.gathered.size >= MAX_CAUSES && by.length > 0) return this.entryFor(change, []);
    const fresh = { change, by, calls: 0, runs: new Set<string>(), tools: new Set<string>(), reason: null };
    this.gathered.set(key, fresh);
    return fresh;
  }
}
