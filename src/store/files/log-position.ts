/**
 * The last position that a process knew, to check that the files still continue from it. Files never get shorter than
 * this. Shorter files are an older copy or were cut, and a new record would reuse a position that is already taken.
 */
import type { LedgerHead } from "../../ledger/record.ts";
import type { CheckpointPosition } from "../journal/checkpoint/checkpoint.ts";
import type { ReadJournal } from "./recover.ts";
import type { LogCursor } from "./tail-reader.ts";

export interface LogPosition {
  head: LedgerHead;
  size: number;
  generation: number;
  journal_size: number;
  crc: number;
}

export function logPositionOf({
  head,
  ledger_size: size,
  generation,
  journal_size,
  crc,
}: LogCursor): LogPosition {
  return { head, size, generation, journal_size, crc };
}

/**
 * Checks that the journals still contain the block before this position. If the checkpoint contains that journal, the
 * ledger decides.
 */
export function isContinued(
  { generation, journal_size, crc }: LogPosition,
  base: CheckpointPosition,
  journals: readonly ReadJournal[],
): boolean {
  if (generation <= base.generation) return true;
  const journal = journals.find((found) => found.generation === generation);
  return journal?.parsed.items.some((item) => item.to === journal_size && item.crc === crc) ?? false;
}
