/**
 * The connections of a process to `svc.db`: one that writes, one that reads, and a descriptor of the
 * write-ahead log to sync by. Syncing the log here rather than in COMMIT lets the lock go first, and
 * keeps the wait off the event loop.
 */
import type { Head } from "../../ledger/record.ts";
import { closeDatabase, type Database, openDatabase, type PreparedStatement } from "../logged/connection.ts";
import type { Disk } from "../logged/disk.ts";
import { migrateLedger } from "./schema.ts";

export interface HeadRow {
  n: number;
  generation: number;
  head: Head;
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

/** The statements that either connection needs. */
export class LedgerStatements {
  readonly db: Database;
  private readonly headRow: PreparedStatement;
  private readonly journalFrom: PreparedStatement;
  private readonly ledgerRange: PreparedStatement;
  private readonly linesRange: PreparedStatement;

  constructor(db: Database) {
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

  /** Several reads of one moment. */
  snapshot<T>(work: () => T): T {
    this.db.exec("BEGIN");
    try {
      return work();
    } finally {
      this.db.exec("COMMIT");
    }
  }
}

export class Connections {
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
  private readonly disk: Disk;
  private readonly path: string;

  private constructor(disk: Disk, path: string, writer: Database, reader: Database, wal_fd: number) {
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

  static open(disk: Disk, path: string): Connections {
    let writer: Database | undefined;
    let reader: Database | undefined;
    try {
      writer = openDatabase(path, { synchronous: "NORMAL", autocheckpoint: false });
      migrateLedger(writer, path);
      reader = openDatabase(path, { synchronous: "NORMAL", autocheckpoint: false });
      reader.exec("PRAGMA query_only = ON");
      // Reading makes sure that the write-ahead log exists; it stays the same file while we are connected.
      reader.prepare("SELECT count(*) FROM head").get();
      return new Connections(disk, path, writer, reader, disk.openNow(`${path}-wal`, 2));
    } catch (error) {
      closeDatabase(writer);
      closeDatabase(reader);
      throw error;
    }
  }

  /** Whether the names still lead to the files that are open. */
  get isInPlace(): boolean {
    const { disk, path } = this;
    return (
      disk.factsAt(path)?.ino === this.ino && disk.factsAt(`${path}-wal`)?.ino === disk.facts(this.wal_fd).ino
    );
  }

  close(): void {
    closeDatabase(this.writer.db);
    closeDatabase(this.reader.db);
    // Not before the connections: SQLite takes no locks on this file, so closing it drops none.
    void this.disk.close(this.wal_fd).catch(() => {});
  }
}
