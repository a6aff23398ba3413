/** The connection that moves a checkpoint. It runs in a thread, where waits inside SQLite do not block callers. */
import { SERVICE_LIMITS } from "../../../kernel/limits.ts";
import { openDatabase, type SqliteDatabase } from "../connection.ts";

export function openCheckpointWriter(path: string): SqliteDatabase {
  return openDatabase(path, {
    // The journal is deleted after this commit, so the commit alone must be durable.
    synchronous: "FULL",
    wait_ms: SERVICE_LIMITS.store_deadline_ms,
    // The pages of one journal, so that a transaction writes no page twice.
    cache_kib: 16_000,
  });
}

/** Truncates the write-ahead log, which could otherwise still contain deleted documents. */
export function truncateWal(db: SqliteDatabase): void {
  db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
}
