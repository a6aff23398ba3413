/**
 * State of a witness: the last checkpoint of each log that it cosigned. It is a database, so that reading and replacing
 * are one step across processes, and a cosignature is durable before it is sent.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { sha256Hex } from "../../kernel/hash.ts";
import {
  closeDatabase,
  openDatabase,
  type PreparedStatement,
  type SqliteDatabase,
  sqliteFailure,
} from "../../store/journal/connection.ts";

export interface StoredCheckpoint {
  size: number;
  root: string;
  /** The cosigned checkpoint. */
  note: string;
}

const WAIT_MS = 5_000;

export class WitnessState {
  private readonly path: string;
  private readonly db: SqliteDatabase;
  private readonly find: PreparedStatement;
  private readonly put: PreparedStatement;

  constructor(folder: string) {
    this.path = join(folder, "witness.db");
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      this.db = openDatabase(this.path, { synchronous: "FULL", wait_ms: WAIT_MS });
      this.db.exec(
        "CREATE TABLE IF NOT EXISTS logs (origin_hash TEXT PRIMARY KEY, size INTEGER NOT NULL, root TEXT NOT NULL, note TEXT NOT NULL) WITHOUT ROWID",
      );
      this.find = this.db.prepare("SELECT size, root, note FROM logs WHERE origin_hash = ?");
      this.put = this.db.prepare(
        "INSERT OR REPLACE INTO logs (origin_hash, size, root, note) VALUES (?, ?, ?, ?)",
      );
    } catch (error) {
      throw sqliteFailure(error, this.path);
    }
  }

  /** Atomically replaces the stored checkpoint with the result of `next`. Null leaves it unchanged. */
  replace(origin: string, next: (last: StoredCheckpoint | undefined) => StoredCheckpoint | null): void {
    const hash = sha256Hex(origin);
    try {
      this.db.exec("BEGIN IMMEDIATE");
      const given = next(this.find.get(hash) as StoredCheckpoint | undefined);
      if (given !== null) this.put.run(hash, given.size, given.root, given.note);
      this.db.exec("COMMIT");
    } catch (error) {
      if (this.db.isTransaction) this.db.exec("ROLLBACK");
      throw sqliteFailure(error, this.path);
    }
  }

  /** `hash` is the SHA-256 of the log's origin, in hex. */
  noteOf(hash: string): string | undefined {
    return (this.find.get(hash) as StoredCheckpoint | undefined)?.note;
  }

  close(): void {
    closeDatabase(this.db);
  }
}
