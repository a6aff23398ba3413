/**
 * The files log: `ledger.jsonl` and a journal beside it, written under one lock. The journal's blocks
 * are written first and the ledger's lines second: the lines commit. Both files are append-only to
 * everybody, so even a broken lock could only add lines that do not chain, never overwrite any.
 */
import { SvcError } from "../../kernel/errors.ts";
import { EMPTY_HEAD } from "../../ledger/record.ts";
import type { CommittedUnit } from "../batch.ts";
import {
  CHANGES_SINCE,
  encodeBatch,
  encodeItem,
  JOURNAL_FORMAT,
  type JournalItem,
  type Synced,
  type ToldSoFar,
} from "../logged/block.ts";
import { type Base, EMPTY_BASE } from "../logged/checkpoint.ts";
import { isDiskFull } from "../logged/connection.ts";
import {
  type Disk,
  EXISTING_APPEND,
  errorCode,
  readRangeAsync,
  syncFolder,
  writeAll,
} from "../logged/disk.ts";
import type { Journaled, LoadedLog, Log, OpenForCopy, PinnedLog } from "../logged/log.ts";
import type { Stretch } from "../logged/search.ts";
import { mayBeFound } from "../may-be-found.ts";
import { pinFiles } from "./backup.ts";
import { type Cursor, followJournal } from "./follow.ts";
import { Handles } from "./handles.ts";
import { cutTo, loadFiles, orphanedLedger, rewrite } from "./load.ts";
import { FileLock } from "./lock.ts";
import { journalGeneration, journalPath, ledgerPath, lockPath } from "./paths.ts";
import { type LogStanding, standingOf } from "./standing.ts";

interface FilesLogParts {
  disk: Disk;
  folder: string;
  locate(from: number, to: number): Stretch;
  warn(message: string, fields?: Record<string, unknown>): void;
}

export class FilesLog implements Log {
  readonly kind = "files" as const;
  readonly what = "ledger.jsonl";
  private readonly parts: FilesLogParts;
  private readonly path: string;
  private readonly fileLock: FileLock;
  private readonly handles: Handles;
  private cursor: Cursor | undefined;
  /** How far it knew the files, while what was found there since is not right. */
  private stood: LogStanding | undefined;
  /** How far this process has made each file durable. */
  private synced = { ledger: 0, journal: 0 };
  private base: Base = EMPTY_BASE;
  isDamaged = false;

  constructor(parts: FilesLogParts) {
    this.parts = parts;
    this.path = ledgerPath(parts.folder);
    this.fileLock = new FileLock(parts.disk, lockPath(parts.folder));
    this.handles = new Handles(parts.disk);
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

  news(locked: boolean): Journaled[] | "reload" {
    const { disk, folder } = this.parts;
    const { cursor } = this;
    if (cursor === undefined) return "reload";
    if (locked) {
      const place = this.placeOf(cursor);
      if (place === undefined) {
        // It would take records that are not found again. Opening anew tells whether they are back.
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
    const { fd, bytes, crc } = await this.newJournal(head, EMPTY_BASE.crc);
    // The names of both files must outlive a power cut before the checkpoint says that they exist.
    await disk.sync(ledger);
    await syncFolder(disk, folder);
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
    return { base: EMPTY_BASE, journals, problem: undefined, known: "everything" };
  }

  async load(base: Base): Promise<LoadedLog> {
    const { disk, folder, warn } = this.parts;
    const stood = this.stood ?? (this.cursor && standingOf(this.cursor));
    const { cursor, loaded } = await loadFiles({ disk, folder, warn, base, stood });
    // Whoever looks again must still know what this process knew before.
    this.stood = loaded.problem === undefined ? undefined : stood;
    await this.handles.retire(this.cursor?.ledger_fd);
    await this.handles.retire(this.cursor?.journal_fd);
    this.cursor = cursor;
    this.base = base;
    this.synced = { ledger: 0, journal: 0 };
    this.isDamaged = false;
    if (loaded.problem === undefined) await this.removeStrays(base.generation, cursor.generation);
    return loaded;
  }

  async write(units: readonly CommittedUnit[], told: ToldSoFar, leave: () => void): Promise<Journaled> {
    const { disk } = this.parts;
    const before = this.cursor!;
    const tip = { size: before.ledger_size, crc: before.crc };
    const batch = encodeBatch(units, tip, this.synced, before.format < CHANGES_SINCE ? undefined : told);
    const journal = Buffer.from(batch.text);
    let lines = "";
    for (const unit of units) for (const line of unit.lines) lines += `${line}\n`;
    let has_left = false;
    const go = () => {
      leave();
      has_left = true;
    };
    try {
      // The lines commit, and let others see the batch. One without lines is seen as soon as it is in the journal.
      if (lines === "") go();
      await writeAll(disk, before.journal_fd, journal, null);
      if (lines !== "") {
        go();
        await writeAll(disk, before.ledger_fd, Buffer.from(lines), null);
      }
    } catch (error) {
      const isGone = await this.cutBack(before);
      if (isGone || !has_left) throw error;
      throw mayBeFound("a write that failed could not be taken back", error);
    }
    const after: Cursor = {
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
    // Also what others wrote before: a later answer must not outlive what it builds on.
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
      // What the closed journal says must be on disk before the next one says that it is closed.
      await disk.datasync(before.ledger_fd);
      const trailer = encodeItem({ kind: "next", generation }, before.crc);
      const { head, ledger_size: size } = before;
      const header = { kind: "header", format: JOURNAL_FORMAT, generation, head, size } as const;
      const { fd, bytes, crc } = await this.newJournal(header, trailer.crc);
      // A journal that another one names must be found after a power cut.
      await syncFolder(disk, folder);
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
      // After a sync that failed for anything but room, what was written before is not sure any more.
      this.isDamaged ||= !isDiskFull(error);
      throw error;
    }
    await this.handles.retire(before.journal_fd);
    this.synced = { ...this.synced, journal: 0 };
  }

  /** Loading opens both files by their names anyway. */
  async recover(): Promise<void> {}

  async resync(): Promise<void> {
    const { disk, folder } = this.parts;
    // After a failed sync the kernel may count bytes as written that never were; writing them again,
    // from what was just read back and verified, is the only way to be sure of them.
    await rewrite(disk, this.path, this.base.size);
    for (let generation = this.base.generation + 1; generation <= this.cursor!.generation; generation++) {
      await rewrite(disk, journalPath(folder, generation), 0);
    }
    await syncFolder(disk, folder);
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

  /** How long the files are, if their names still lead to those that are open. A closed journal may go. */
  private placeOf({ ledger_ino, journal_ino, journal_fd, generation }: Cursor): Synced | undefined {
    const { disk, folder } = this.parts;
    const ledger = disk.factsAt(this.path);
    const journal = disk.factsAt(journalPath(folder, generation)) ?? disk.facts(journal_fd);
    if (ledger?.ino !== ledger_ino || journal.ino !== journal_ino) return undefined;
    // One that is gone may have been closed first; then it is longer than what was read of it.
    return { ledger: ledger.size, journal: journal.nlink === 0 ? -1 : journal.size };
  }

  private async newJournal(
    header: Extract<JournalItem, { kind: "header" }>,
    seed: number,
  ): Promise<{ fd: number; bytes: number; crc: number }> {
    const { disk, folder } = this.parts;
    const path = journalPath(folder, header.generation);
    const { text, crc } = encodeItem(header, seed);
    // One that a crash left behind was never named by its predecessor; it is begun again.
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

  /** Under the lock, before another process can have seen it: takes off what a failed write left; says whether it is gone. */
  private async cutBack(to: Cursor): Promise<boolean> {
    const { disk } = this.parts;
    try {
      await cutTo(disk, to.ledger_fd, to.ledger_size);
      await cutTo(disk, to.journal_fd, to.journal_size);
      if (
        disk.facts(to.ledger_fd).size === to.ledger_size &&
        disk.facts(to.journal_fd).size === to.journal_size
      ) {
        return true;
      }
    } catch (error) {
      this.parts.warn("a failed write could not be taken back yet", { error: errorCode(error) });
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
