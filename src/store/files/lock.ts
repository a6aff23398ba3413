/**
 * The writer lock across all processes: the write lock of an empty SQLite database. The operating system releases it
 * when its holder dies, unlike a lock file with a process id. Every process and container that shares the directory
 * sees it.
 */
import { SvcError } from "../../kernel/errors.ts";
import {
  closeDatabase,
  isBusy,
  openDatabase,
  type PreparedStatement,
  type SqliteDatabase,
  sqliteFailure,
  whenFree,
} from "../journal/connection.ts";
import type { DiskOps } from "../journal/disk.ts";

export class FileLock {
  private readonly disk: DiskOps;
  private readonly path: string;
  private db: SqliteDatabase | undefined;
  private begin: PreparedStatement | undefined;
  private end: PreparedStatement | undefined;
  private ino = 0;

  constructor(disk: DiskOps, path: string) {
    this.disk = disk;
    this.path = path;
  }

  async take(until: number): Promise<void> {
    try {
      await whenFree(() => this.attempt(), until, this.path);
    } catch (error) {
      throw sqliteFailure(error, this.path);
    }
  }

  release(): void {
    try {
      if (this.db?.isTransaction) this.end!.run();
    } catch {
      // If the rollback fails, closing the connection releases everything.
      this.close();
    }
  }

  close(): void {
    const { db } = this;
    this.db = undefined;
    closeDatabase(db);
  }

  private attempt(): void {
    for (let tries = 0; tries < 2; tries++) {
      if (this.db === undefined) this.connect();
      try {
        this.begin!.run();
      } catch (error) {
        if (!isBusy(error)) this.close();
        throw error;
      }
      // A lock on a moved or deleted file excludes no other process, which may lock a new file at the same path.
      if (this.disk.factsAt(this.path)?.ino === this.ino) return;
      this.close();
    }
    throw new SvcError("unavailable", `ledger unavailable: ${this.path} was moved or deleted`);
  }

  private connect(): void {
    const db = openDatabase(this.path, { synchronous: "NORMAL" });
    try {
      this.begin = db.prepare("BEGIN IMMEDIATE");
      this.end = db.prepare("ROLLBACK");
      this.ino = this.disk.factsAt(this.path)?.ino ?? 0;
      this.db = db;
    } catch (error) {
      closeDatabase(db);
      throw error;
    }
  }
}
