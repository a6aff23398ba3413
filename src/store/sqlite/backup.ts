/**
 * A copy of `svc.db` at one moment. Its records never change, so short reads copy them: a long one would keep the
 * write-ahead log from starting over, and make writers wait for that.
 */
import { SvcError } from "../../kernel/errors.ts";
import type { DiskOps } from "../journal/disk.ts";
import type { OpenForCopy, PinnedLog } from "../journal/log.ts";
import { type LedgerStatements, SqliteConnections } from "./connections.ts";
import { databasePath } from "./paths.ts";

const RECORDS = 1_000;

interface SqlitePin {
  disk: DiskOps;
  /** Used under the lock, which prevents the deletion of journals. */
  locked: LedgerStatements;
  /** The same database without the lock. */
  reader(): LedgerStatements;
  open: OpenForCopy;
}

export function pinDatabase({ disk, locked, reader, open }: SqlitePin): PinnedLog {
  const { n, generation, head, size, crc } = locked.head()!;
  const journal = locked.journal(-1);
  return async (_base, scratch) => {
    const path = databasePath(scratch);
    const copy = SqliteConnections.open(disk, path);
    try {
      copy.begin.run();
      for (let seq = 0; seq < head.records; ) {
        const rows = reader().ledger(seq, Math.min(RECORDS, head.records - seq));
        if (rows.length === 0) throw new SvcError("corrupt", `svc.db has lost record ${seq}: run svc verify`);
        for (const row of rows) copy.addRecord.run(row.seq, row.prev, row.hash, row.line);
        seq += rows.length;
        await new Promise(setImmediate);
      }
      for (const row of journal) copy.addBlock.run(row.n, row.generation, row.block);
      copy.setHead.run(n, generation, head.records, head.hash, size, crc);
      copy.commit.run();
      // Moves everything into the one file that the backup includes.
      copy.writer.db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    } finally {
      copy.close();
    }
    const fd = await open(path);
    return [{ name: "svc.db", fd, size: disk.facts(fd).size }];
  };
}
