/**
 * The files log: `ledger.jsonl` and a journal, written under one lock. A batch writes its journal blocks first and its
 * ledger lines second; the lines commit. All processes only append, so even a broken lock could only add lines that do
 * not chain, never overwrite any.
 */
import { SvcError } from "../../kernel/errors.ts";
import { EMPTY_HEAD } from "../../ledger/record.ts";
import type { CommittedUnit } from "../batch.ts";
import { indeterminateCommit } from "../indeterminate-commit.ts";
import { type CheckpointPosition, EMPTY_CHECKPOINT } from "../journal/checkpoint/checkpoint.ts";
import { isDiskFull } from "../journal/connection.ts";
import {
  type DiskOps,
  EXISTING_APPEND,
  errorCode,
  readRangeAsync,
  syncDirectory,
  writeAll,
} from "../journal/disk.ts";
import {
  CHANGES_SINCE,
  encodeBatch,
  encodeItem,
  JOURNAL_FORMAT,
  type JournaledDocs,
  type JournalItem,
  type SyncedSizes,
} from "../journal/lines/block.ts";
import type { JournalUnits, LoadedLog, OpenForCopy, PinnedLog, StoreLog } from "../journal/log.ts";
import type { LineRange } from "../journal/search.ts";
import { pinFiles } from "./backup.ts";
import { FileHandles } from "./file-handles.ts";
import { loadFiles, orphanedLedger, rewriteFile, truncateFile } from "./load.ts";
import { FileLock } from "./lock.ts";
import { type LogPosition, logPositionOf } from "./log-position.ts";
import { journalGeneration, journalPath, ledgerPath, lockPath } from "./paths.ts";
import { followJournal, type LogCursor } from "./tail-reader.ts";

interface FilesLogParts {
  disk: DiskOps;
  folder: string;
  locate(from: number, to: number): LineRange;
  warn(message: string, fields?: Record<string, unknown>): void;
}

export class FilesLog implements StoreLog {
  readonly kind = "files" as const;
  readonly what = "ledger.jsonl";
  private readonly parts: FilesLogParts;
  private readonly path: string;
  private readonly fileLock: FileLock;
  private readonly handles: FileHandles;
  private cursor: LogCursor | undefined;
  /** The last known position, while the content found after it is invalid. */
  private last_known: LogPosition | undefined;
  /** How far this process has made each file durable. */
  private synced = { ledger: 0, journal: 0 };
  private base: CheckpointPosition = EMPTY_CHECKPOINT;
  isDamaged = false;

  constructor(parts: FilesLogParts) {
    this.parts = parts;
    this.path = ledgerPath(parts.folder);
    this.fileLock = new FileLock(parts.disk, lockPath(parts.folder));
    this.handles = new FileHandles(parts.disk);
  }

  get journal_bytes(): number {
    return this.cursor?.journal_size ?? 0;
  }

  get grown_to(): number {
    return this.cursor?.ledger_size ?? 0;
  }

  get position(): string {
    const { cursor } = this;
    return cursor === undefined ? "" : `${cursor.generation}/${cursor.journal_size}/${cursor.crc}`;
  }

  lock(until: number): Promise<void> {
    return this.fileLock.take(until);
  }

  unlock(): void {
    this.fileLock.release();
  }

  news(locked: boolean): JournalUnits[] | "reload" {
    const { disk, folder } = this.parts;
    const { cursor } = this;
    if (cursor === undefined) return "reload";
    if (locked) {
      const place = this.placeOf(cursor);
      if (place === undefined) {
        // Records written here would be lost. Reopening the files shows whether they are back.
        this.isDamaged = true;
        throw new SvcError("unavailable", `ledger unavailable: the files in ${folder} were moved or deleted`);
      }
      if (place.ledger === cursor.ledger_size && place.journal === cursor.journal_size) return [];
    }
    const found = followJournal(disk, folder, cursor, locked);
    if (found === "reload") return found;
    if (found.cursor.journal_fd !== cursor.journal_fd) {
      void this.handles.retire(cursor.journal_fd);
      this.synced = { ...this.synced, journal: 0 };
    }
    this.cursor = found.cursor;
    return found.journals;
  }

  async create(): Promise<LoadedLog> {
    const { disk, folder } = this.parts;
    const ledger = await disk.open(this.path, "a+");
    await this.handles.retire(this.cursor?.ledger_fd);
    if (disk.facts(ledger).size > 0) {
      const orphan = orphanedLedger(disk, ledger);
      this.cursor = { ...orphan.cursor, ledger_fd: ledger, journal_fd: ledger };
      return orphan.loaded;
    }
    const head = {
      kind: "header",
      format: JOURNAL_FORMAT,
      generation: 1,
      head: EMPTY_HEAD,
      size: 0,
    } as const;
    const { fd, bytes, crc } = await this.newJournal(head, EMPTY_CHECKPOINT.crc);
    // Both file names must survive a power cut before the checkpoint refers to them.
    await disk.sync(ledger);
    await syncDirectory(disk, folder);
    this.cursor = {
      ledger_fd: ledger,
      ledger_ino: disk.facts(ledger).ino,
      ledger_size: 0,
      head: EMPTY_HEAD,
      format: JOURNAL_FORMAT,
      generation: 1,
      journal_fd: fd,
      journal_ino: disk.facts(fd).ino,
      journal_size: bytes,
      crc,
    };
    const journals = [{ generation: 1, units: [] }];
    return { base: EMPTY_CHECKPOINT, journals, problem: undefined, known: "everything" };
  }

  async load(base: CheckpointPosition): Promise<LoadedLog> {
    const { disk, folder, warn } = this.parts;
    const last_known = this.last_known ?? (this.cursor && logPositionOf(this.cursor));
    const { cursor, loaded } = await loadFiles({ disk, folder, warn, base, last_known });
    // A later attempt must still know the position that this process knew.
    this.last_known = loaded.problem === undefined ? undefined : last_known;
    await this.handles.retire(this.cursor?.ledger_fd);
    await this.handles.retire(this.cursor?.journal_fd);
    this.cursor = cursor;
    this.base = base;
    this.synced = { ledger: 0, journal: 0 };
    this.isDamaged = false;
    if (loaded.problem === undefined) await this.removeStrays(base.generation, cursor.generation);
    return loaded;
  }

  async write(
    units: readonly CommittedUnit[],
    journaled: JournaledDocs,
    leave: () => void,
  ): Promise<JournalUnits> {
    const { disk } = this.parts;
    const before = this.cursor!;
    const tip = { size: before.ledger_size, crc: before.crc };
    const batch = encodeBatch(units, tip, this.synced, before.format < CHANGES_SINCE ? undefined : journaled);
    const journal = Buffer.from(batch.text);
    let lines = "";
    for (const unit of units) for (const line of unit.lines) lines += `${line}\n`;
    let has_left = false;
    const go = () => {
      leave();
      has_left = true;
    };
    try {
      // The lines commit and publish the batch. A batch without lines is visible as soon as it is in the journal.
      if (lines === "") go();
      await writeAll(disk, before.journal_fd, journal, null);
      if (lines !== "") {
        go();
        await writeAll(disk, before.ledger_fd, Buffer.from(lines), null);
      }
    } catch (error) {
      const isGone = await this.cutBack(before);
      if (isGone || !has_left) throw error;
      throw indeterminateCommit("a failed write could not be rolled back", error);
    }
    const after: LogCursor = {
      ledger_fd: before.ledger_fd,
      ledger_ino: before.ledger_ino,
      ledger_size: batch.tip.size,
      head: units[units.length - 1]!.head,
      format: before.format,
      generation: before.generation,
      journal_fd: before.journal_fd,
      journal_ino: before.journal_ino,
      journal_size: before.journal_size + journal.length,
      crc: batch.tip.crc,
    };
    this.cursor = after;
    return { generation: before.generation, units: batch.units };
  }

  sync(): Promise<void> {
    return this.handles.reading(() => this.syncNow());
  }

  private async syncNow(): Promise<void> {
    const { disk } = this.parts;
    const { ledger_fd, ledger_size, journal_fd, journal_size } = this.cursor!;
    const work: Promise<void>[] = [];
    // Includes lines of other processes: a later response must not survive a crash without the records it builds on.
    if (ledger_size !== this.synced.ledger) work.push(disk.datasync(ledger_fd));
    if (journal_size !== this.synced.journal) work.push(disk.datasync(journal_fd));
    const results = await Promise.allSettled(work);
    for (const result of results) if (result.status === "rejected") throw result.reason;
    if (this.cursor?.journal_fd === journal_fd) this.synced = { ledger: ledger_size, journal: journal_size };
  }

  pin(open: OpenForCopy): Promise<PinnedLog> {
    const { disk, folder } = this.parts;
    return pinFiles(disk, folder, this.cursor!, open);
  }

  async rotate(): Promise<void> {
    const { disk, folder } = this.parts;
    const before = this.cursor!;
    const generation = before.generation + 1;
    try {
      // The content of the closed journal must be on disk before the next journal refers to it.
      await disk.datasync(before.ledger_fd);
      const trailer = encodeItem({ kind: "next", generation }, before.crc);
      const { head, ledger_size: size } = before;
      const header = { kind: "header", format: JOURNAL_FORMAT, generation, head, size } as const;
      const { fd, bytes, crc } = await this.newJournal(header, trailer.crc);
      // A journal that another one names must survive a power cut.
      await syncDirectory(disk, folder);
      await writeAll(disk, before.journal_fd, Buffer.from(trailer.text), null);
      await disk.datasync(before.journal_fd);
      const journal_ino = disk.facts(fd).ino;
      const place = {
        format: JOURNAL_FORMAT,
        generation,
        journal_fd: fd,
        journal_ino,
        journal_size: bytes,
        crc,
      };
      this.cursor = { ...before, ...place };
    } catch (error) {
      await this.cutBack(before);
      // After a failed sync, earlier writes are uncertain, unless the disk is just full.
      this.isDamaged ||= !isDiskFull(error);
      throw error;
    }
    await this.handles.retire(before.journal_fd);
    this.synced = { ...this.synced, journal: 0 };
  }

  /** Loading opens both files by name anyway. */
  async recover(): Promise<void> {}

  async resync(): Promise<void> {
    const { disk, folder } = this.parts;
    // After a failed sync, the kernel can treat lost bytes as written. Writing them again, from the content just read
    // and verified, is the only way to be sure of them.
    await rewriteFile(disk, this.path, this.base.size);
    for (let generation = this.base.generation + 1; generation <= this.cursor!.generation; generation++) {
      await rewriteFile(disk, journalPath(folder, generation), 0);
    }
    await syncDirectory(disk, folder);
  }

  async retire(generation: number): Promise<void> {
    const { disk, folder } = this.parts;
    for (const name of await disk.list(folder)) {
      const found = journalGeneration(name);
      if (found !== undefined && found <= generation) await this.remove(journalPath(folder, found));
    }
  }

  range(from: number, to: number): Promise<string[]> {
    const { disk, locate } = this.parts;
    return this.handles.reading(async () => {
      const { offset, lengths } = locate(from, to);
      const size = lengths.reduce((sum, length) => sum + length, 0);
      const bytes = await readRangeAsync(disk, this.cursor!.ledger_fd, offset, offset + size);
      const lines: string[] = [];
      let at = 0;
      for (const length of lengths) {
        if (at + length > bytes.length) break;
        lines.push(bytes.toString("utf8", at, at + length - 1));
        at += length;
      }
      return lines;
    });
  }

  async close(): Promise<void> {
    const { cursor } = this;
    this.cursor = undefined;
    this.fileLock.close();
    await this.handles.retire(cursor?.ledger_fd);
    if (cursor?.journal_fd !== cursor?.ledger_fd) await this.handles.retire(cursor?.journal_fd);
  }

  /** Returns the lengths of the files if their names still lead to the open ones. A closed journal can be gone. */
  private placeOf({ ledger_ino, journal_ino, journal_fd, generation }: LogCursor): SyncedSizes | undefined {
    const { disk, folder } = this.parts;
    const ledger = disk.factsAt(this.path);
    const journal = disk.factsAt(journalPath(folder, generation)) ?? disk.facts(journal_fd);
    if (ledger?.ino !== ledger_ino || journal.ino !== journal_ino) return undefined;
    // A deleted journal was closed first, so it is longer than the part that this process has read.
    return { ledger: ledger.size, journal: journal.nlink === 0 ? -1 : journal.size };
  }

  private async newJournal(
    header: Extract<JournalItem, { kind: "header" }>,
    seed: number,
  ): Promise<{ fd: number; bytes: number; crc: number }> {
    const { disk, folder } = this.parts;
    const path = journalPath(folder, header.generation);
    const { text, crc } = encodeItem(header, seed);
    // After a crash, a journal that its predecessor never named can remain. It starts from scratch.
    const fresh = await disk.open(path, "w");
    try {
      await writeAll(disk, fresh, Buffer.from(text), null);
      await disk.datasync(fresh);
    } finally {
      await disk.close(fresh);
    }
    const fd = await disk.open(path, EXISTING_APPEND);
    return { fd, bytes: Buffer.byteLength(text), crc };
  }

  /**
   * Removes the bytes of a failed write, under the lock and before another process can see them. Returns whether that
   * worked.
   */
  private async cutBack(to: LogCursor): Promise<boolean> {
    const { disk } = this.parts;
    try {
      await truncateFile(disk, to.ledger_fd, to.ledger_size);
      await truncateFile(disk, to.journal_fd, to.journal_size);
      if (
        disk.facts(to.ledger_fd).size === to.ledger_size &&
        disk.facts(to.journal_fd).size === to.journal_size
      ) {
        return true;
      }
    } catch (error) {
      this.parts.warn("a failed write could not be rolled back yet", { error: errorCode(error) });
    }
    this.isDamaged = true;
    return false;
  }

  private async removeStrays(taken: number, active: number): Promise<void> {
    const { disk, folder } = this.parts;
    for (const name of await disk.list(folder)) {
      const found = journalGeneration(name);
      const isStray = found !== undefined && (found <= taken || found > active);
      if (isStray || name.startsWith("probe-")) await this.remove(`${folder}/${name}`);
    }
  }

  private async remove(path: string): Promise<void> {
    await this.parts.disk.unlink(path).catch((error) => {
      if (errorCode(error) !== "ENOENT")
        this.parts.warn("an old file could not be removed", { error: errorCode(error) });
    });
  }
}
