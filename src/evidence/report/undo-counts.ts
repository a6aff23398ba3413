/**
 * Counts the undos of a period by step, not by attempt: each step counts by its final state. Only undos in progress or
 * failed are stored, since a step that is undone is never undone again.
 */
import type { LedgerRecord } from "../../ledger/record.ts";

export interface UndoTotals {
  begun: number;
  compensated: number;
  failed: number;
  verified: number;
  verification_failed: number;
  unverified: number;
}

type Open = "under way" | "failed" | "verification failed";

export class UndoCounts {
  readonly totals: UndoTotals = {
    begun: 0,
    compensated: 0,
    failed: 0,
    verified: 0,
    verification_failed: 0,
    unverified: 0,
  };
  private readonly open = new Map<string, Open>();

  take({ event, run_id, step }: LedgerRecord): void {
    const key = `${run_id} ${step}`;
    const { totals, open } = this;
    const before = open.get(key);
    switch (event) {
      case "compensating":
        if (before === undefined) totals.begun++;
        else this.takeBack(before);
        open.set(key, "under way");
        break;
      case "verified":
      case "unverified":
        totals[event]++;
        break;
      case "verification_failed":
        totals.verification_failed++;
        open.set(key, "verification failed");
        break;
      case "compensation_failed":
        totals.failed++;
        if (before !== "verification failed") open.set(key, "failed");
        break;
      case "compensated":
        totals.compensated++;
        open.delete(key);
    }
  }

  /** Removes a failure from the totals when its undo is attempted again. */
  private takeBack(before: Open): void {
    if (before === "under way") return;
    this.totals.failed--;
    if (before === "verification failed") this.totals.verification_failed--;
  }
}
