/** One resident process per directory: the write lock of an empty SQLite file, which the system releases at death. */
import { lstatSync } from "node:fs";
import { join } from "node:path";
import { closeDatabase, isBusy, openDatabase, type SqliteDatabase } from "../../store/journal/connection.ts";

/** Null if another process has the lock. */
export function takeLock(folder: string): SqliteDatabase | null {
  const path = join(folder, "lock.db");
  let db: SqliteDatabase | undefined;
  try {
    db = openDatabase(path, { synchronous: "NORMAL" });
    const { ino } = lstatSync(path);
    db.exec("BEGIN IMMEDIATE");
    // If the file was replaced in the meantime, another process can lock the new one.
    if (lstatSync(path).ino === ino) return db;
  } catch (error) {
    if (!isBusy(error)) {
      closeDatabase(db);
      throw error;
    }
  }
  closeDatabase(db);
  return null;
}
