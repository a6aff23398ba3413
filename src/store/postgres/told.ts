/**
 * How far anybody has been told: the newest record that this process has answered for, or has seen another process
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

  note(head: Head): void {
    if (head.records > this.head.records) this.head = head;
  }
}

/** `there` is the head as it stands, and the hash of the record in the last place that was told of. */
export function assertNotSetBack(told: Head, there: { records: number; told: string | null }): void {
  if (told.records === 0) return;
  if (there.records >= told.records && there.told === told.hash) return;
  throw new SvcError(
    "corrupt",
    `ledger corrupt: record ${told.records - 1} was answered for and is not in the database any more, which was set back to an older state; appends are refused until the newer state is back, or until every server was restarted to go on without it`,
  );
}
