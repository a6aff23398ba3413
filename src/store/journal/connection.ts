/**
 * Opens SQLite databases and interprets their errors. Nothing waits inside SQLite: if another process holds a lock,
 * this process retries between turns of the event loop.
 */
import * as fs from "node:fs";
import { DatabaseSync, type DatabaseSyncInstance } from "@photostructure/sqlite";
import { SvcError } from "../../kernel/errors.ts";

export type SqliteDatabase = DatabaseSyncInstance;
export type PreparedStatement = ReturnType<SqliteDatabase["prepare"]>;

interface ConnectionOptions {
  /**
   * FULL: a commit is durable when it returns. NORMAL: the caller syncs the write-ahead log before it reports success;
   * SQLite still syncs around checkpoints.
   */
  synchronous: "FULL" | "NORMAL";
  cache_kib?: number;
  /** How long SQLite can wait for a lock. Only for threads without an event loop to block. */
  wait_ms?: number;
  /** False if another thread runs the checkpoints. */
  autocheckpoint?: boolean;
}

export function openDatabase(path: string, options: ConnectionOptions): SqliteDatabase {
  createPrivate(path);
  const db = new DatabaseSync(path, { timeout: options.wait_ms ?? 0 });
  try {
    db.exec("PRAGMA journal_mode = WAL");
    // Applies per connection, and a reopened one starts at NORMAL, so this runs every time.
    db.exec(`PRAGMA synchronous = ${options.synchronous}`);
    // Overwrites deleted working data with zeros instead of only unlinking it from the tree.
    db.exec("PRAGMA secure_delete = ON");
    db.exec("PRAGMA trusted_schema = OFF");
    db.exec(`PRAGMA cache_size = -${options.cache_kib ?? 2_000}`);
    if (options.autocheckpoint === false) db.exec("PRAGMA wal_autocheckpoint = 0");
    return db;
  } catch (error) {
    closeDatabase(db);
    throw error;
  }
}

/**
 * Closing alone keeps statements, and so the connection and its locks, alive until garbage collection. Release them
 * first.
 */
export function closeDatabase(db: SqliteDatabase | undefined): void {
  if (db === undefined || !db.isOpen) return;
  try {
    if (db.isTransaction) db.exec("ROLLBACK");
  } catch {
    // Nothing was committed, so closing is enough.
  }
  db.close();
}

/**
 * Creates a private file, because SQLite would use the umask. Touches only a new file: closing any descriptor of an
 * existing one would drop the locks that this process holds on it.
 */
function createPrivate(path: string): void {
  try {
    fs.closeSync(fs.openSync(path, "wx", 0o600));
  } catch (error) {
    // The file exists, or SQLite will report the problem more precisely.
    if ((error as NodeJS.ErrnoException).code === undefined) throw error;
  }
}

export function sqliteCode(error: unknown): number | undefined {
  const code = (error as { errcode?: unknown } | null)?.errcode;
  return typeof code === "number" ? code & 0xff : undefined;
}

const BUSY = 5;
const LOCKED = 6;
const FULL = 13;
const DAMAGED = new Set([11, 26]);

export function isBusy(error: unknown): boolean {
  const code = sqliteCode(error);
  return code === BUSY || code === LOCKED;
}

export function isDiskFull(error: unknown): boolean {
  return sqliteCode(error) === FULL || (error as { code?: unknown } | null)?.code === "ENOSPC";
}

/** Maps a failed SQLite call to an error for the store's caller. */
export function sqliteFailure(error: unknown, file: string): SvcError {
  if (error instanceof SvcError) return error;
  const code = sqliteCode(error);
  const text = (error as { errstr?: unknown } | null)?.errstr;
  const reason = typeof text === "string" ? text : String((error as Error | null)?.message ?? error);
  if (code !== undefined && DAMAGED.has(code)) {
    return new SvcError("corrupt", `${file} is damaged (${reason}): restore it from a backup`, {
      cause: error,
    });
  }
  return new SvcError("unavailable", `ledger unavailable: ${file} cannot be used now (${reason})`, {
    cause: error,
  });
}

/** Retries per turn of the event loop before the first sleep, because holders keep a lock for microseconds. */
const EAGER_TRIES = 20;
const SLEEP_MS = 1;

/** Runs `attempt` until it meets no lock, or rejects at `until` (on the clock of performance.now). */
export async function whenFree<T>(attempt: () => T, until: number, file: string): Promise<T> {
  for (let tries = 0; ; tries++) {
    try {
      return attempt();
    } catch (error) {
      if (!isBusy(error)) throw error;
      if (performance.now() >= until) {
        throw new SvcError("unavailable", `ledger unavailable: another process holds the lock on ${file}`, {
          cause: error,
        });
      }
    }
    await new Promise<void>((resolve) => {
      if (tries < EAGER_TRIES) setImmediate(resolve);
      else setTimeout(resolve, SLEEP_MS);
    });
  }
}
