/**
 * One writer at a time, over all processes: the write lock of an SQLite database with nothing in it.
 * The operating system lets go of it when its holder dies, which a lock file with a process number
 * does not get, and every process and container that shares the folder sees it.
 */
import { SvcError } from "../../kernel/errors.ts";
import {
  closeDatabase,
  type Database,
  isBusy,
  openDatabase,
  type PreparedStatement,
  sqliteFailure,
  whenFree,
} from "../logged/connection.ts";
import type { Disk } from "../logged/disk.ts";

export class FileLock {
  private readonly disk: Disk;
  private readonly path: string;
  private db: Database | undefined;
  private begin: PreparedStatement | undefined;
  private end: PreparedStatement | undefined;
  private ino = 0;

  constructor(disk: Disk, path: string) {
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
      // A connection that cannot even give up is closed, which gives up everything.
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
      // A lock on a file that was moved or deleted keeps no process out; another may be in its place.
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
