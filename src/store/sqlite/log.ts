/**
 * The sqlite log: records and journal blocks go into `svc.db` in one transaction. COMMIT runs at synchronous NORMAL,
 * which releases the lock. Then the log syncs the write-ahead log, and only then responds to callers.
 * docs/design/stores.md explains why that is durable, including checkpoints.
 */
import { SvcError } from "../../kernel/errors.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { EMPTY_HEAD, GENESIS_HASH } from "../../ledger/record.ts";
import type { CommittedUnit } from "../batch.ts";
import { indeterminateCommit } from "../indeterminate-commit.ts";
import { type CheckpointPosition, EMPTY_CHECKPOINT } from "../journal/checkpoint/checkpoint.ts";
import type { WorkerHandle } from "../journal/checkpoint/worker-handle.ts";
import { isDiskFull, sqliteCode, sqliteFailure, whenFree } from "../journal/connection.ts";
import { type DiskOps, errorCode, syncDirectory } from "../journal/disk.ts";
import { encodeBatch, type JournaledDocs } from "../journal/lines/block.ts";
import { parseJournal } from "../journal/lines/parse-journal.ts";
import type { JournalUnits, LoadedLog, OpenForCopy, PinnedLog, StoreLog } from "../journal/log.ts";
import { pinDatabase } from "./backup.ts";
import { type HeadRow, type JournalRow, SqliteConnections } from "./connections.ts";
import { ledgerUnit, verifyTail } from "./verify-tail.ts";

interface SqliteLogParts {
  disk: DiskOps;
  folder: string;
  path: string;
  helper: WorkerHandle;
  warn(message: string, fields?: Record<string, unknown>): void;
}

/** Written bytes after which the thread moves the write-ahead log into the database. */
const WAL_BYTES = 4_000_000;
/** Time since the last successful sync after which the log checks that the disk still responds. */
const QUIET_MS = 20;

export class SqliteLog implements StoreLog {
  readonly kind = "sqlite" as const;
  readonly what = "svc.db";
  /** The write-ahead log can start over, so no file grows with every record. */
  readonly grown_to = 0;
  private readonly parts: SqliteLogParts;
  private open: SqliteConnections | undefined;
  private at: HeadRow = { n: 0, generation: 1, head: EMPTY_HEAD, size: 0, crc: 0 };
  private sinceWal = 0;
  private walJob: Promise<void> | undefined;
  private syncedAt = 0;
  private readonly blocks = new Map<number, number>();
  isDamaged = false;

  constructor(parts: SqliteLogParts) {
    this.parts = parts;
  }

  get journal_bytes(): number {
    return this.blocks.get(this.at.generation) ?? 0;
  }

  get position(): string {
    return `${this.at.generation}/${this.at.n}/${this.at.crc}`;
  }

  async lock(until: number): Promise<void> {
    const { path } = this.parts;
    try {
      this.open ??= await whenFree(() => SqliteConnections.open(this.parts.disk, path), until, path);
      const { open } = this;
      await this.askDisk(open);
      if (performance.now() > until) {
        // All callers of this batch have timed out, so nothing of it should remain.
        throw new SvcError("unavailable", "ledger unavailable: the disk does not answer in time");
      }
      await whenFree(() => open.begin.run(), until, path);
    } catch (error) {
      // After another process's lock or a precise disk error, there is no need to reconnect.
      if (sqliteCode(error) !== undefined) this.isDamaged ||= this.open !== undefined;
      if (errorCode(error)?.startsWith("E") && sqliteCode(error) === undefined) throw error;
      throw sqliteFailure(error, path);
    }
  }

  /**
   * COMMIT writes on the event loop's thread and would hang with a hung disk, so an asynchronous call that would also
   * hang goes first. Under load, the last sync has just shown that the disk responds.
   */
  private async askDisk(open: SqliteConnections): Promise<void> {
    if (performance.now() - this.syncedAt > QUIET_MS) await this.parts.disk.touch(open.wal_fd);
  }

  unlock(): void {
    const { open } = this;
    if (!open?.writer.db.isTransaction) return;
    try {
      open.rollback.run();
    } catch {
      this.isDamaged = true;
    }
  }

  news(locked: boolean): JournalUnits[] | "reload" {
    const { open } = this;
    if (open === undefined) return "reload";
    if (locked && !open.isInPlace) {
      this.isDamaged = true;
      throw new SvcError("unavailable", `ledger unavailable: ${this.parts.path} was moved or deleted`);
    }
    try {
      const from = locked ? open.writer : open.reader;
      const head = from.head();
      if (head === undefined || head.n < this.at.n) return "reload";
      if (head.n === this.at.n) return this.follow(head, []);
      return this.follow(head, from.journal(this.at.n));
    } catch (error) {
      this.isDamaged = true;
      if (!locked) return "reload";
      throw sqliteFailure(error, this.parts.path);
    }
  }

  async create(): Promise<LoadedLog> {
    const open = this.connected();
    if (open.writer.head() !== undefined || open.writer.ledger(0, 1).length > 0)
      return this.withoutCheckpoint();
    open.setHead.run(0, 1, 0, GENESIS_HASH, 0, EMPTY_CHECKPOINT.crc);
    open.commit.run();
    // The database and its log must survive a power cut before the checkpoint refers to them.
    await this.parts.disk.datasync(open.wal_fd);
    await syncDirectory(this.parts.disk, this.parts.folder);
    this.at = { n: 0, generation: 1, head: EMPTY_HEAD, size: 0, crc: EMPTY_CHECKPOINT.crc };
    const journals = [{ generation: 1, units: [] }];
    return { base: EMPTY_CHECKPOINT, journals, problem: undefined, known: "everything" };
  }

  async load(base: CheckpointPosition): Promise<LoadedLog> {
    try {
      const { head, journals, problem, known } = verifyTail(this.connected().writer, base, this.at);
      // A later attempt must still know the position that this process knew.
      if (problem === undefined) this.at = head;
      this.blocks.clear();
      for (const { generation, bytes } of journals) this.grow(generation, bytes);
      this.isDamaged = false;
      return { base, journals, problem, known };
    } catch (error) {
      throw sqliteFailure(error, this.parts.path);
    }
  }

  async write(
    units: readonly CommittedUnit[],
    journaled: JournaledDocs,
    leave: () => void,
  ): Promise<JournalUnits> {
    const open = this.holding();
    const { n, generation, size, crc } = this.at;
    const batch = encodeBatch(units, { size, crc }, undefined, journaled);
    const { head } = units[units.length - 1]!;
    const next: HeadRow = { n: n + 1, generation, head, size: batch.tip.size, crc: batch.tip.crc };
    let has_left = false;
    try {
      for (const unit of units) {
        for (const [i, { seq, prev, hash }] of unit.records.entries()) {
          open.addRecord.run(seq, prev, hash, unit.lines[i]!);
        }
      }
      open.addBlock.run(next.n, generation, batch.text);
      this.putHead(open, next);
      leave();
      has_left = true;
      open.commit.run();
    } catch (error) {
      this.takeBack(open, error);
      if (isDiskFull(error)) throw error;
      // Its pages may be in the log despite the failure. The next process to open the log decides.
      if (has_left) throw indeterminateCommit("a COMMIT has failed", error);
      throw sqliteFailure(error, this.parts.path);
    }
    this.lookBehind(open);
    this.at = next;
    this.grow(generation, batch.text.length);
    this.sinceWal += batch.text.length + batch.tip.size - size;
    return { generation, units: batch.units };
  }

  async sync(): Promise<void> {
    // Includes commits of other processes, which are in the same file.
    await this.parts.disk.datasync(this.connected().wal_fd);
    this.syncedAt = performance.now();
    if (this.sinceWal > WAL_BYTES && this.walJob === undefined) this.moveWal();
  }

  async pin(open: OpenForCopy): Promise<PinnedLog> {
    const { disk } = this.parts;
    return pinDatabase({ disk, locked: this.holding().writer, reader: () => this.connected().reader, open });
  }

  async rotate(): Promise<void> {
    const open = this.holding();
    const next = { ...this.at, generation: this.at.generation + 1 };
    try {
      this.putHead(open, next);
      open.commit.run();
      this.at = next;
      // Another process can write in between, so the caller catches up again.
      await whenFree(
        () => open.begin.run(),
        performance.now() + SERVICE_LIMITS.store_deadline_ms,
        this.parts.path,
      );
    } catch (error) {
      this.takeBack(open, error);
      throw isDiskFull(error) ? error : sqliteFailure(error, this.parts.path);
    }
  }

  async recover(): Promise<void> {
    const { disk, path, helper, folder } = this.parts;
    const before = this.open;
    this.unlock();
    if (disk.factsAt(path) === undefined)
      throw new SvcError("unavailable", `ledger unavailable: ${path} is missing`);
    // A failed sync may have lost a part of the write-ahead log that the cache still has. Moving it into the database,
    // and truncating and syncing the log, removes any dependence on it.
    await helper.ask("flush", undefined);
    const wal_fd = await disk.open(`${path}-wal`, "r+");
    try {
      await disk.sync(wal_fd);
    } finally {
      await disk.close(wal_fd);
    }
    await syncDirectory(disk, folder);
    // Reads continue on the old connections until there are new ones.
    const until = performance.now() + SERVICE_LIMITS.store_deadline_ms;
    this.open = await whenFree(() => SqliteConnections.open(disk, path), until, path);
    before?.close();
    await this.lock(until);
  }

  async resync(): Promise<void> {
    await this.parts.disk.datasync(this.connected().wal_fd);
  }

  /** The thread that moved the checkpoint has also deleted the journal's rows. */
  async retire(generation: number): Promise<void> {
    for (const known of this.blocks.keys()) if (known <= generation) this.blocks.delete(known);
  }

  async range(from: number, to: number): Promise<string[]> {
    try {
      return this.connected().reader.lines(from, to);
    } catch (error) {
      throw sqliteFailure(error, this.parts.path);
    }
  }

  async close(): Promise<void> {
    await this.walJob?.catch(() => {});
    this.open?.close();
    this.open = undefined;
  }

  private connected(): SqliteConnections {
    if (this.open === undefined) throw new SvcError("unavailable", "the store is closed");
    return this.open;
  }

  private holding(): SqliteConnections {
    const open = this.connected();
    if (open.writer.db.isTransaction) return open;
    throw new SvcError("unavailable", `ledger unavailable: the lock on ${this.parts.path} was lost`);
  }

  /**
   * The first read after a commit writes to shared memory, which would fail on a frozen disk. Read now, so that later
   * reads need not. If this read fails, the commit is still valid.
   */
  private lookBehind(open: SqliteConnections): void {
    try {
      open.reader.head();
    } catch {
      this.isDamaged = true;
    }
  }

  /** Rolls a full disk back and takes the lock again. After any other failure, the connection is not trusted. */
  private takeBack(open: SqliteConnections, error: unknown): void {
    this.unlock();
    this.isDamaged ||= !(error instanceof SvcError) && !isDiskFull(error);
    if (!isDiskFull(error) || this.isDamaged) return;
    try {
      open.begin.run();
    } catch {
      // Another process was faster. The caller gets an error when it continues without the lock.
    }
  }

  /** Applies the rows after this process's position: all of them, or returns `reload`. */
  private follow(head: HeadRow, rows: readonly JournalRow[]): JournalUnits[] | "reload" {
    const journals: JournalUnits[] = [];
    let { n, crc } = this.at;
    let size = this.at.size;
    for (const row of rows) {
      const parsed = parseJournal(Buffer.from(row.block), 0, crc);
      if (row.n !== n + 1 || parsed.rest !== "none") return "reload";
      const units = parsed.items.filter((item) => item.kind === "unit");
      journals.push({ generation: row.generation, units });
      this.grow(row.generation, row.block.length);
      n = row.n;
      crc = parsed.crc;
      size = units[units.length - 1]?.size ?? size;
      if (n === head.n) break;
    }
    if (n !== head.n || crc !== head.crc || size !== head.size) return "reload";
    if (head.generation > (journals.at(-1)?.generation ?? this.at.generation)) {
      journals.push({ generation: head.generation, units: [] });
    }
    this.at = head;
    return journals;
  }

  private putHead(open: SqliteConnections, { n, generation, head, size, crc }: HeadRow): void {
    open.setHead.run(n, generation, head.records, head.hash, size, crc);
  }

  private grow(generation: number, bytes: number): void {
    this.blocks.set(generation, (this.blocks.get(generation) ?? 0) + bytes);
  }

  private moveWal(): void {
    this.sinceWal = 0;
    this.walJob = this.parts.helper
      .ask<void>("wal", undefined)
      .catch((error) =>
        this.parts.warn("the write-ahead log could not be moved into the database", { error: String(error) }),
      )
      .finally(() => {
        this.walJob = undefined;
      });
  }

  /**
   * Until the checkpoint contains a journal, svc.db has everything, and the checkpoint can start over. After that, the
   * ledger is read-only.
   */
  private async withoutCheckpoint(): Promise<LoadedLog> {
    const whole = await this.load(EMPTY_CHECKPOINT);
    if (whole.problem === undefined) {
      if (whole.journals.some(({ units }) => units.length > 0))
        this.parts.warn("svc.checkpoint was missing; rebuilding it from svc.db");
      return whole;
    }
    const problem = new SvcError(
      "corrupt",
      "svc.checkpoint, which holds the older working data alongside svc.db, is missing: restore both from a backup",
    );
    const units = [ledgerUnit(this.connected().reader, EMPTY_CHECKPOINT)];
    return { base: EMPTY_CHECKPOINT, journals: [{ generation: 1, units }], problem, known: "ledger" };
  }
}
