/**
 * A process's connections to `svc.db`: one to write, one to read, and a descriptor of the write-ahead log for syncs.
 * Syncing the log here instead of in COMMIT releases the lock earlier, and keeps the wait off the event loop.
 */
import type { LedgerHead } from "../../ledger/record.ts";
import {
  closeDatabase,
  openDatabase,
  type PreparedStatement,
  type SqliteDatabase,
} from "../journal/connection.ts";
import type { DiskOps } from "../journal/disk.ts";
import { migrateLedger } from "./schema.ts";

export interface HeadRow {
  n: number;
  generation: number;
  head: LedgerHead;
  size: number;
  crc: number;
}

interface RawHead {
  n: number;
  generation: number;
  records: number;
  hash: string;
  size: number;
  crc: number;
}

export interface JournalRow {
  n: number;
  generation: number;
  block: string;
}

interface LedgerRow {
  seq: number;
  prev: string;
  hash: string;
  line: string;
}

/** The statements that both connections need. */
export class LedgerStatements {
  readonly db: SqliteDatabase;
  private readonly headRow: PreparedStatement;
  private readonly journalFrom: PreparedStatement;
  private readonly ledgerRange: PreparedStatement;
  private readonly linesRange: PreparedStatement;

  constructor(db: SqliteDatabase) {
    this.db = db;
    this.headRow = db.prepare("SELECT n, generation, records, hash, size, crc FROM head");
    this.journalFrom = db.prepare("SELECT n, generation, block FROM journal WHERE n > ? ORDER BY n");
    this.ledgerRange = db.prepare(
      "SELECT seq, prev, hash, line FROM ledger WHERE seq >= ? ORDER BY seq LIMIT ?",
    );
    this.linesRange = db.prepare("SELECT line FROM ledger WHERE seq BETWEEN ? AND ? ORDER BY seq");
  }

  head(): HeadRow | undefined {
    const row = this.headRow.get() as RawHead | undefined;
    if (row === undefined) return undefined;
    const { n, generation, records, hash, size, crc } = row;
    return { n, generation, head: { records, hash }, size, crc };
  }

  journal(after: number): JournalRow[] {
    return this.journalFrom.all(after) as JournalRow[];
  }

  ledger(from: number, limit: number): LedgerRow[] {
    return this.ledgerRange.all(from, limit) as LedgerRow[];
  }

  lines(from: number, to: number): string[] {
    return this.linesRange.all(from, to).map((row: { line: string }) => row.line);
  }

  /** Runs several reads of one snapshot. */
  snapshot<T>(work: () => T): T {
    this.db.exec("BEGIN");
    try {
      return work();
    } finally {
      this.db.exec("COMMIT");
    }
  }
}

export class SqliteConnections {
  readonly writer: LedgerStatements;
  readonly reader: LedgerStatements;
  readonly begin: PreparedStatement;
  readonly commit: PreparedStatement;
  readonly rollback: PreparedStatement;
  readonly addRecord: PreparedStatement;
  readonly addBlock: PreparedStatement;
  readonly setHead: PreparedStatement;
  readonly ino: number;
  readonly wal_fd: number;
  private readonly disk: DiskOps;
  private readonly path: string;

  private constructor(
    disk: DiskOps,
    path: string,
    writer: SqliteDatabase,
    reader: SqliteDatabase,
    wal_fd: number,
  ) {
    this.disk = disk;
    this.path = path;
    this.writer = new LedgerStatements(writer);
    this.reader = new LedgerStatements(reader);
    this.begin = writer.prepare("BEGIN IMMEDIATE");
    this.commit = writer.prepare("COMMIT");
    this.rollback = writer.prepare("ROLLBACK");
    this.addRecord = writer.prepare("INSERT INTO ledger (seq, prev, hash, line) VALUES (?, ?, ?, ?)");
    this.addBlock = writer.prepare("INSERT INTO journal (n, generation, block) VALUES (?, ?, ?)");
    this.setHead = writer.prepare(
      "INSERT OR REPLACE INTO head (id, n, generation, records, hash, size, crc) VALUES (0, ?, ?, ?, ?, ?, ?)",
    );
    this.ino = disk.factsAt(path)?.ino ?? 0;
    this.wal_fd = wal_fd;
  }

  static open(disk: DiskOps, path: string): SqliteConnections {
    let writer: SqliteDatabase | undefined;
    let reader: SqliteDatabase | undefined;
    try {
      writer = openDatabase(path, { synchronous: "NORMAL", autocheckpoint: false });
      migrateLedger(writer, path);
      reader = openDatabase(path, { synchronous: "NORMAL", autocheckpoint: false });
      reader.exec("PRAGMA query_only = ON");
      // A read ensures that the write-ahead log exists. The file stays the same while this process is connected.
      reader.prepare("SELECT count(*) FROM head").get();
      return new SqliteConnections(disk, path, writer, reader, disk.openNow(`${path}-wal`, 2));
    } catch (error) {
      closeDatabase(writer);
      closeDatabase(reader);
      throw error;
    }
  }

  /** Whether the names still lead to the open files. */
  get isInPlace(): boolean {
    const { disk, path } = this;
    return (
      disk.factsAt(path)?.ino === this.ino && disk.factsAt(`${path}-wal`)?.ino === disk.facts(this.wal_fd).ino
    );
  }

  close(): void {
    closeDatabase(this.writer.db);
    closeDatabase(this.reader.db);
    // After the connections. SQLite takes no locks on this file, so closing it drops none.
    void this.disk.close(this.wal_fd).catch(() => {});
  }
}
