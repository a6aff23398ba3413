/**
 * The newest acknowledged record: one that this process has reported to a caller, or has seen another process commit. A
 * database without it is in an older state (an older backup, a lagging standby). An append there would take the place
 * of records that callers already rely on.
 */
import { SvcError } from "../../kernel/errors.ts";
import { EMPTY_HEAD, type LedgerHead } from "../../ledger/record.ts";

export class AcknowledgedHead {
  private head: LedgerHead = EMPTY_HEAD;

  get newest(): LedgerHead {
    return this.head;
  }

  /** Records a commit after a head that was checked against the acknowledged one. */
  note(head: LedgerHead): void {
    if (head.records > this.head.records) this.head = head;
  }

  /**
   * Accepts a head seen from another process only if it extends the last acknowledged record. Otherwise a restored
   * database that has grown since would be accepted.
   */
  noteSeen(
    head: LedgerHead,
    { acknowledged, there }: { acknowledged: LedgerHead; there: string | null },
  ): void {
    if (acknowledged === this.head && isThere(acknowledged, head.records, there)) this.note(head);
  }
}

/** Whether the database still has the record. `there` is the hash at the position of the acknowledged record. */
function isThere(acknowledged: LedgerHead, records: number, there: string | null): boolean {
  return acknowledged.records === 0 || (records >= acknowledged.records && there === acknowledged.hash);
}

export function assertHasAcknowledged(acknowledged: LedgerHead, records: number, there: string | null): void {
  if (isThere(acknowledged, records, there)) return;
  throw new SvcError(
    "corrupt",
    `ledger corrupt: record ${acknowledged.records - 1} was acknowledged but is missing from the database, which was set back to an older state; appends are refused until the newer state is back, or until every server has been restarted to continue without it`,
  );
}
