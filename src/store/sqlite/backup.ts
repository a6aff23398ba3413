/**
 * `svc.db` at one moment. Its records are never changed, so they are copied in short reads: a long one would keep the
 * write-ahead log from starting over, and make writers wait for that.
 */
import { SvcError } from "../../kernel/errors.ts";
import type { Disk } from "../logged/disk.ts";
import type { OpenForCopy, PinnedLog } from "../logged/log.ts";
import { Connections, type LedgerStatements } from "./connections.ts";
import { databasePath } from "./paths.ts";

const RECORDS = 1_000;

interface SqlitePin {
  disk: Disk;
  /** Under the lock: no journal is deleted meanwhile. */
  locked: LedgerStatements;
  /** The same database afterwards. */
  reader(): LedgerStatements;
  open: OpenForCopy;
}

export function pinDatabase({ disk, locked, reader, open }: SqlitePin): PinnedLog {
  const { n, generation, head, size, crc } = locked.head()!;
  const journal = locked.journal(-1);
  return async (_base, scratch) => {
    const path = databasePath(scratch);
    const copy = Connections.open(disk, path);
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
      // Into the one file that is taken.
      copy.writer.db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    } finally {
      copy.close();
    }
    const fd = await open(path);
    return [{ name: "svc.db", fd, size: disk.facts(fd).size }];
  };
}
