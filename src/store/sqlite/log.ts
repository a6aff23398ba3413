/**
 * The sqlite log: records and journal blocks go into `svc.db` in one transaction. COMMIT runs at
 * synchronous NORMAL, which lets the lock go; the write-ahead log is then synced, and only then is
 * a caller told. Why that is durable, checkpoints included, is in docs/design/stores.md.
 */
import { SvcError } from "../../kernel/errors.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { EMPTY_HEAD, GENESIS } from "../../ledger/record.ts";
import type { CommittedUnit } from "../batch.ts";
import { encodeBatch, type ToldSoFar } from "../logged/block.ts";
import { type Base, EMPTY_BASE } from "../logged/checkpoint.ts";
import { isDiskFull, sqliteCode, sqliteFailure, whenFree } from "../logged/connection.ts";
import { type Disk, errorCode, syncFolder } from "../logged/disk.ts";
import type { Journaled, LoadedLog, Log, OpenForCopy, PinnedLog } from "../logged/log.ts";
import { parseJournal } from "../logged/parse.ts";
import type { Helper } from "../logged/side-thread.ts";
import { mayBeFound } from "../may-be-found.ts";
import { pinDatabase } from "./backup.ts";
import { Connections, type HeadRow, type JournalRow } from "./connections.ts";
import { ledgerUnit, verifyTail } from "./verify-tail.ts";

interface SqliteLogParts {
  disk: Disk;
  folder: string;
  path: string;
  helper: Helper;
  warn(message: string, fields?: Record<string, unknown>): void;
}

/** Written bytes after which the write-ahead log is moved into the database by the thread. */
const WAL_BYTES = 4_000_000;
/** After this long without a successful sync the disk is asked whether it still answers. */
const QUIET_MS = 20;

export class SqliteLog implements Log {
  readonly kind = "sqlite" as const;
  readonly what = "svc.db";
  /** The write-ahead log starts over when it may. */
  readonly grown_to = 0;
  private readonly parts: SqliteLogParts;
  private open: Connections | undefined;
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
      this.open ??= await whenFree(() => Connections.open(this.parts.disk, path), until, path);
      const { open } = this;
      await this.askDisk(open);
      if (performance.now() > until) {
        // No caller waits for this batch any more: better that nothing of it stays.
        throw new SvcError("unavailable", "ledger unavailable: the disk does not answer in time");
      }
      await whenFree(() => open.begin.run(), until, path);
    } catch (error) {
      // Another process's lock, or a disk that says itself what is wrong, is no reason to connect anew.
      if (sqliteCode(error) !== undefined) this.isDamaged ||= this.open !== undefined;
      if (errorCode(error)?.startsWith("E") && sqliteCode(error) === undefined) throw error;
      throw sqliteFailure(error, path);
    }
  }

  /**
   * COMMIT writes on the event loop's thread and would hang with a hung disk; a call that hangs the same
   * way elsewhere goes first. Under load the last sync has just shown that the disk answers.
   */
  private async askDisk(open: Connections): Promise<void> {
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

  news(locked: boolean): Journaled[] | "reload" {
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
    open.setHead.run(0, 1, 0, GENESIS, 0, EMPTY_BASE.crc);
    open.commit.run();
    // The database and its log must be found after a power cut before the checkpoint says they exist.
    await this.parts.disk.datasync(open.wal_fd);
    await syncFolder(this.parts.disk, this.parts.folder);
    this.at = { n: 0, generation: 1, head: EMPTY_HEAD, size: 0, crc: EMPTY_BASE.crc };
    const journals = [{ generation: 1, units: [] }];
    return { base: EMPTY_BASE, journals, problem: undefined, known: "everything" };
  }

  async load(base: Base): Promise<LoadedLog> {
    try {
      const { head, journals, problem, known } = verifyTail(this.connected().writer, base, this.at);
      // Whoever looks again must still know what this process knew before.
      if (problem === undefined) this.at = head;
      this.blocks.clear();
      for (const { generation, bytes } of journals) this.grow(generation, bytes);
      this.isDamaged = false;
      return { base, journals, problem, known };
    } catch (error) {
      throw sqliteFailure(error, this.parts.path);
    }
  }

  async write(units: readonly CommittedUnit[], told: ToldSoFar, leave: () => void): Promise<Journaled> {
    const open = this.holding();
    const { n, generation, size, crc } = this.at;
    const batch = encodeBatch(units, { size, crc }, undefined, told);
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
      // Its pages may be in the log although it failed; what opens the log next decides.
      if (has_left) throw mayBeFound("a COMMIT has failed", error);
      throw sqliteFailure(error, this.parts.path);
    }
    this.lookBehind(open);
    this.at = next;
    this.grow(generation, batch.text.length);
    this.sinceWal += batch.text.length + batch.tip.size - size;
    return { generation, units: batch.units };
  }

  async sync(): Promise<void> {
    // Also what others committed before: it is in the same file.
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
      // Another process may come in between; whoever asked catches up again.
      await whenFree(() => open.begin.run(), performance.now() + LIMITS.store_deadline_ms, this.parts.path);
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
    // A failed sync may have lost part of the write-ahead log that the cache still has. Moved into the
    // database, and the log cut and synced, nothing depends on it any more.
    await helper.ask("flush", undefined);
    const wal_fd = await disk.open(`${path}-wal`, "r+");
    try {
      await disk.sync(wal_fd);
    } finally {
      await disk.close(wal_fd);
    }
    await syncFolder(disk, folder);
    // Reads go on through the old connections until there are new ones.
    const until = performance.now() + LIMITS.store_deadline_ms;
    this.open = await whenFree(() => Connections.open(disk, path), until, path);
    before?.close();
    await this.lock(until);
  }

  async resync(): Promise<void> {
    await this.parts.disk.datasync(this.connected().wal_fd);
  }

  /** The thread that moved the checkpoint has deleted the journal's rows as well. */
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

  private connected(): Connections {
    if (this.open === undefined) throw new SvcError("unavailable", "the store is closed");
    return this.open;
  }

  private holding(): Connections {
    const open = this.connected();
    if (open.writer.db.isTransaction) return open;
    throw new SvcError("unavailable", `ledger unavailable: the lock on ${this.parts.path} was lost`);
  }

  /**
   * The first look behind a commit writes to shared memory, which a frozen disk would not let it do; taken now, later
   * reads need not. If it fails, the commit stands all the same.
   */
  private lookBehind(open: Connections): void {
    try {
      open.reader.head();
    } catch {
      this.isDamaged = true;
    }
  }

  /** A full disk is rolled back and the lock taken again; after a failure the connection is not trusted. */
  private takeBack(open: Connections, error: unknown): void {
    this.unlock();
    this.isDamaged ||= !(error instanceof SvcError) && !isDiskFull(error);
    if (!isDiskFull(error) || this.isDamaged) return;
    try {
      open.begin.run();
    } catch {
      // Another process was faster; whoever goes on without the lock is told so.
    }
  }

  /** Takes in rows behind where this process stands; all of them, or it cannot tell. */
  private follow(head: HeadRow, rows: readonly JournalRow[]): Journaled[] | "reload" {
    const journals: Journaled[] = [];
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

  private putHead(open: Connections, { n, generation, head, size, crc }: HeadRow): void {
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
   * As long as no journal was taken into the checkpoint, svc.db has all there is, and the checkpoint is begun anew.
   * After that the ledger is shown line by line, and refused new ones.
   */
  private async withoutCheckpoint(): Promise<LoadedLog> {
    const whole = await this.load(EMPTY_BASE);
    if (whole.problem === undefined) {
      if (whole.journals.some(({ units }) => units.length > 0))
        this.parts.warn("svc.checkpoint was missing and is made anew from svc.db");
      return whole;
    }
    const problem = new SvcError(
      "corrupt",
      "svc.checkpoint, which holds the older working data beside svc.db, is missing: restore both from a backup",
    );
    const units = [ledgerUnit(this.connected().reader, EMPTY_BASE)];
    return { base: EMPTY_BASE, journals: [{ generation: 1, units }], problem, known: "ledger" };
  }
}
