/**
 * Reads new batches from the journal. Without the lock, a reader can meet a batch that another process is still writing
 * or about to roll back. So a batch counts only if it is complete and the ledger had all of its lines before the
 * journal was read.
 */
import type { LedgerHead } from "../../ledger/record.ts";
import { type DiskOps, EXISTING_APPEND, errorCode, readRange } from "../journal/disk.ts";
import { JOURNAL_FORMAT, type UnitBlock, type WithOffset } from "../journal/lines/block.ts";
import { parseJournal, unitsOf } from "../journal/lines/parse-journal.ts";
import type { JournalUnits } from "../journal/log.ts";
import { journalPath } from "./paths.ts";

/** How far a process has read. It must write nowhere else. */
export interface LogCursor {
  ledger_fd: number;
  ledger_ino: number;
  ledger_size: number;
  head: LedgerHead;
  /** The journal format. */
  format: number;
  generation: number;
  journal_fd: number;
  journal_ino: number;
  journal_size: number;
  crc: number;
}

interface Followed {
  cursor: LogCursor;
  journals: JournalUnits[];
}

export function followJournal(
  disk: DiskOps,
  folder: string,
  start: LogCursor,
  locked: boolean,
): Followed | "reload" {
  const journals: JournalUnits[] = [];
  let cursor = start;
  for (;;) {
    // The ledger size comes first. A batch that is rolled back after this line can then not pass for another.
    const ledger_size = disk.facts(cursor.ledger_fd).size;
    const journal = disk.facts(cursor.journal_fd);
    if (ledger_size < cursor.ledger_size || journal.size < cursor.journal_size) return "reload";
    if (journal.size === cursor.journal_size) {
      // No process deletes an open journal, and this one is not closed.
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

function wholeBatches(items: readonly WithOffset[], ledger_size: number): WithOffset[] {
  let count = 0;
  for (let i = 0; i < items.length; i++) {
    const item = items[i]!;
    if (item.kind === "unit" && item.size > ledger_size) break;
    if (item.kind === "next" || (item.kind === "unit" && item.end)) count = i + 1;
  }
  return items.slice(0, count);
}

function advance(cursor: LogCursor, units: readonly WithOffset<UnitBlock>[], last: WithOffset): LogCursor {
  const unit = units[units.length - 1];
  return {
    ...cursor,
    head: unit?.head ?? cursor.head,
    ledger_size: unit?.size ?? cursor.ledger_size,
    journal_size: last.to,
    crc: last.crc,
  };
}

/** Returns undefined if the checkpoint already contains that journal, too. */
function openNext(
  disk: DiskOps,
  folder: string,
  cursor: LogCursor,
  generation: number,
): LogCursor | undefined {
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
