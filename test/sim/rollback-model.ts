/**
 * What a rollback should do, written down a second time, naively: no ledger, no manifests, no sharing with
 * the code under test. It watches every undo as it happens and says what the report must be.
 */
import type { RollbackReport } from "../../src/rollback/plan/report.ts";

export interface ToolFacts {
  name: string;
  effect: "read" | "idempotent" | "compensable" | "irreversible";
  requires: string[];
  undoable: boolean;
  approval: boolean;
  reads_back: boolean;
}

export interface StepFacts {
  n: number;
  /** Null where the tool has no manifest. */
  tool: ToolFacts | null;
  depends_on: number[];
  outcome: "open" | "unsure" | "failed" | "done";
  accepted_at: number;
  done_at: number;
  undone_at: number;
  /** Whether the result had what the undo, and the read-back, need. */
  has_id: boolean;
  has_read_id: boolean;
  /** A person agreed, or the undo was begun before. */
  agreed: boolean;
}

export type Ended = "undone" | "unverified" | "failed";

const NEVER = Number.POSITIVE_INFINITY;

export class RunModel {
  readonly steps: StepFacts[] = [];
  /** For this rollback an operator agreed to everything. */
  all_agreed = false;
  private time = 0;

  accept(tool: ToolFacts | null, depends_on: number[]): StepFacts {
    const step: StepFacts = {
      n: this.steps.length,
      tool,
      depends_on,
      outcome: "open",
      accepted_at: ++this.time,
      done_at: NEVER,
      undone_at: NEVER,
      has_id: false,
      has_read_id: false,
      agreed: tool?.approval !== true,
    };
    this.steps.push(step);
    return step;
  }

  finish(step: StepFacts, outcome: "unsure" | "failed" | "done"): void {
    step.outcome = outcome;
    if (outcome === "done") step.done_at = ++this.time;
  }

  undone(step: StepFacts): void {
    if (step.undone_at === NEVER) step.undone_at = ++this.time;
  }

  stands(step: StepFacts): boolean {
    return step.outcome !== "failed" && step.undone_at === NEVER;
  }

  /** Not undone, and nobody minds. */
  harmless(step: StepFacts): boolean {
    const { tool } = step;
    return (
      step.outcome === "done" && tool !== null && !tool.undoable && /^(read|idempotent)$/.test(tool.effect)
    );
  }

  canBeUndone(step: StepFacts): boolean {
    return this.stands(step) && step.outcome === "done" && step.tool?.undoable === true && step.has_id;
  }

  agreed(step: StepFacts): boolean {
    return step.agreed || this.all_agreed;
  }

  depends(later: StepFacts, earlier: StepFacts): boolean {
    if (later.depends_on.includes(earlier.n)) return true;
    if (!earlier.tool || !later.tool?.requires.includes(earlier.tool.name)) return false;
    return earlier.done_at < later.accepted_at && earlier.undone_at > later.accepted_at;
  }

  /** Every step that depends on this one, directly or over harmless ones. */
  holders(step: StepFacts): number[] {
    const found = new Set<number>();
    for (const later of this.steps.slice(step.n + 1)) {
      if (!this.stands(later) || !this.depends(later, step)) continue;
      for (const holder of this.harmless(later) ? this.holders(later) : [later.n]) found.add(holder);
    }
    return [...found].sort((a, b) => a - b);
  }

  /** The obstacle to undoing this step now, or undefined. `tried` are the attempts of this rollback so far. */
  objection(step: StepFacts, tried: ReadonlySet<number>, known: number): string | undefined {
    if (!this.canBeUndone(step)) return `step ${step.n} is not to be undone`;
    if (!this.agreed(step)) return `nobody agreed to the undo of step ${step.n}`;
    const holders = this.holders(step);
    if (holders.length > 0) return `step ${step.n} is undone under ${holders.join()}`;
    const newer = this.steps
      .slice(step.n + 1, known)
      .find(
        (one) =>
          this.canBeUndone(one) && this.agreed(one) && !tried.has(one.n) && this.holders(one).length === 0,
      );
    return newer && `step ${step.n} is undone before the newer step ${newer.n}`;
  }

  /** The report of a rollback that tried these steps, with these ends. */
  report(ends: ReadonlyMap<number, Ended>): Omit<RollbackReport, "failed"> & { failed: number[] } {
    const is = (fate: string) => [...this.steps].reverse().filter((step) => this.fate(step, ends) === fate);
    const numbers = (fate: string): number[] => is(fate).map(({ n }) => n);
    const report = {
      compensated: [...numbers("undone"), ...numbers("unverified")].sort((a, b) => b - a),
      skipped: numbers("skipped"),
      failed: numbers("failed"),
      unrecoverable: numbers("unrecoverable"),
      unresolved: numbers("unresolved"),
      unmanifested: numbers("unmanifested"),
      deferred: is("deferred").map((step) => ({ step: step.n, blocked_by: this.holders(step) })),
      awaiting_approval: numbers("awaiting"),
      unverified: numbers("unverified"),
    };
    const { compensated: _, skipped: __, ...bad } = report;
    return { ...report, complete: Object.values(bad).every((list) => list.length === 0) };
  }

  private fate(step: StepFacts, ends: ReadonlyMap<number, Ended>): string {
    if (step.outcome === "failed") return "nothing";
    const end = ends.get(step.n);
    if (step.undone_at !== NEVER) return end ?? "skipped";
    if (step.outcome !== "done") return "unresolved";
    if (step.tool === null) return "unmanifested";
    if (this.harmless(step)) return "skipped";
    if (!step.tool.undoable || !step.has_id) return "unrecoverable";
    if (end === "failed") return "failed";
    if (this.holders(step).length > 0) return "deferred";
    return this.agreed(step) ? "forgotten" : "awaiting";
  }
}
