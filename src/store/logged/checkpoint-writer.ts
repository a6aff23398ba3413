/** The connection that moves a checkpoint on; in a thread, where waiting inside SQLite holds no caller up. */
import { LIMITS } from "../../kernel/limits.ts";
import { type Database, openDatabase } from "./connection.ts";

export function openCheckpointWriter(path: string): Database {
  return openDatabase(path, {
    // The journal goes once this has committed: the commit must be durable by itself.
    synchronous: "FULL",
    wait_ms: LIMITS.store_deadline_ms,
    // A journal's worth of pages, so that none is written twice in one transaction.
    cache_kib: 16_000,
  });
}

/** Empties the write-ahead log, which would otherwise still hold deleted documents. */
export function shrink(db: Database): void {
  db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
}
