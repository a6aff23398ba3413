/**
 * How far a process knew the files, and whether what it finds there now goes on from that. Files never get shorter
 * than what somebody has followed, except where the journal itself says that a batch was taken back: anything else
 * is an older copy, or a cut, and a record added to it would take a place that was given away already.
 */
import type { Head } from "../../ledger/record.ts";
import type { Base } from "../logged/checkpoint.ts";
import { type Disk, readRange } from "../logged/disk.ts";
import { parseJournal } from "../logged/parse.ts";
import type { Cursor } from "./follow.ts";
import type { ReadJournal } from "./recover.ts";

export interface Standing {
  /** Where the ledger stood, less what was openly taken back since. */
  head: Head;
  size: number;
  generation: number;
  journal_size: number;
  crc: number;
}

/** Through the journal that the process has open, which tells what became of it even when its name is gone. */
export function standingOf(disk: Disk, cursor: Cursor): Standing {
  const { generation, journal_fd, journal_size, crc } = cursor;
  let { head, ledger_size: size } = cursor;
  const bytes = readRange(disk, journal_fd, journal_size, disk.facts(journal_fd).size);
  for (const item of parseJournal(bytes, journal_size, crc).items) {
    if (item.kind === "void" && item.since < journal_size) ({ head, size } = item);
  }
  return { head, size, generation, journal_size, crc };
}

/** Whether the journals still have the block behind which the process stood; one taken in has the ledger's word. */
export function isContinued(
  { generation, journal_size, crc }: Standing,
  base: Base,
  journals: readonly ReadJournal[],
): boolean {
  if (generation <= base.generation) return true;
  const journal = journals.find((found) => found.generation === generation);
  return journal?.parsed.items.some((item) => item.to === journal_size && item.crc === crc) ?? false;
}
