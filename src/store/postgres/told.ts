/**
 * How far callers have been told: the newest record that this process has answered for, or has seen another process
 * commit. A database that does not have it any more was set back (an older backup, a standby that lagged behind), and
 * what would be appended there would take the place of records that people hold answers for.
 */
import { SvcError } from "../../kernel/errors.ts";
import { EMPTY_HEAD, type Head } from "../../ledger/record.ts";

export class Told {
  private head: Head = EMPTY_HEAD;

  get newest(): Head {
    return this.head;
  }

  /** Answered for: committed behind a head that was held against what had been told. */
  note(head: Head): void {
    if (head.records > this.head.records) this.head = head;
  }

  /** Seen: believed only where it goes on from what was told, or a ledger that was set back and grew would pass. */
  noteSeen(head: Head, { told, there }: { told: Head; there: string | null }): void {
    if (told === this.head && isThere(told, head.records, there)) this.note(head);
  }
}

/** Where the record is, and whether it is the same: `there` is the hash in the last place that was told of. */
function isThere(told: Head, records: number, there: string | null): boolean {
  return told.records === 0 || (records >= told.records && there === told.hash);
}

export function assertNotSetBack(told: Head, records: number, there: string | null): void {
  if (isThere(told, records, there)) return;
  throw new SvcError(
    "corrupt",
    `ledger corrupt: record ${told.records - 1} was answered for and is not in the database any more, which was set back to an older state; appends are refused until the newer state is back, or until every server was restarted to go on without it`,
  );
}
