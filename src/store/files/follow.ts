/**
 * Reads on in the journal from where a process stands. Without the lock it may meet a batch that is
 * just being written, or about to be taken back: a batch is taken only whole, and only if the ledger
 * had all of its lines before the journal was read.
 */
import type { Head } from "../../ledger/record.ts";
import { JOURNAL_FORMAT, type Placed, type UnitBlock } from "../logged/block.ts";
import { type Disk, EXISTING_APPEND, errorCode, readRange } from "../logged/disk.ts";
import type { Journaled } from "../logged/log.ts";
import { parseJournal, unitsOf } from "../logged/parse.ts";
import { journalPath } from "./paths.ts";

/** How far a process has read, which is as far as it may write from. */
export interface Cursor {
  ledger_fd: number;
  ledger_ino: number;
  ledger_size: number;
  head: Head;
  /** Of the journal. */
  format: number;
  generation: number;
  journal_fd: number;
  journal_ino: number;
  journal_size: number;
  crc: number;
}

interface Followed {
  cursor: Cursor;
  journals: Journaled[];
}

export function followJournal(
  disk: Disk,
  folder: string,
  start: Cursor,
  locked: boolean,
): Followed | "reload" {
  const journals: Journaled[] = [];
  let cursor = start;
  for (;;) {
    // In this order: a batch that is taken back after this was counted can then not pass for another.
    const ledger_size = disk.facts(cursor.ledger_fd).size;
    const journal = disk.facts(cursor.journal_fd);
    if (ledger_size < cursor.ledger_size || journal.size < cursor.journal_size) return "reload";
    if (journal.size === cursor.journal_size) {
      // No process deletes a journal before it is closed, and this one is not.
      const isLost = journal.nlink === 0 || (locked && ledger_size !== cursor.ledger_size);
      return isLost ? "reload" : { cursor, journals };
    }
    const bytes = readRange(disk, cursor.journal_fd, cursor.journal_size, journal.size);
    const { items, rest } = parseJournal(bytes, cursor.journal_size, cursor.crc);
    if (rest === "broken" || items.some(({ kind }) => kind === "header")) return "reload";
    const whole = wholeBatches(items, ledger_size);
    if (locked && (rest !== "none" || whole.length < items.length)) return "reload";
    const last = whole[whole.length - 1];
    if (last === undefined) return { cursor, journals };
    const units = unitsOf(whole);
    cursor = advance(cursor, units, last);
    journals.push({ generation: cursor.generation, units });
    if (last.kind !== "next") {
      if (locked && ledger_size !== cursor.ledger_size) return "reload";
      return { cursor, journals };
    }
    const next = openNext(disk, folder, cursor, last.generation);
    if (next === undefined) return "reload";
    cursor = next;
    journals.push({ generation: cursor.generation, units: [] });
  }
}

function wholeBatches(items: readonly Placed[], ledger_size: number): Placed[] {
  let count = 0;
  for (let i = 0; i < items.length; i++) {
    const item = items[i]!;
    if (item.kind === "unit" && item.size > ledger_size) break;
    if (item.kind === "next" || (item.kind === "unit" && item.end)) count = i + 1;
  }
  return items.slice(0, count);
}

function advance(cursor: Cursor, units: readonly Placed<UnitBlock>[], last: Placed): Cursor {
  const unit = units[units.length - 1];
  return {
    ...cursor,
    head: unit?.head ?? cursor.head,
    ledger_size: unit?.size ?? cursor.ledger_size,
    journal_size: last.to,
    crc: last.crc,
  };
}

/** Undefined when the checkpoint has already taken that journal in as well. */
function openNext(disk: Disk, folder: string, cursor: Cursor, generation: number): Cursor | undefined {
  let fd: number;
  try {
    fd = disk.openNow(journalPath(folder, generation), EXISTING_APPEND);
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
    throw error;
  }
  const { size, ino } = disk.facts(fd);
  const [header] = parseJournal(readRange(disk, fd, 0, Math.min(size, 1_024)), 0, cursor.crc).items;
  if (header?.kind !== "header" || header.generation !== generation || header.format > JOURNAL_FORMAT) {
    void disk.close(fd);
    return undefined;
  }
  return {
    ...cursor,
    format: header.format,
    generation,
    journal_fd: fd,
    journal_ino: ino,
    journal_size: header.to,
    crc: header.crc,
  };
}
