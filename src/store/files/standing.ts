/**
 * How far a process knew the files, and whether what it finds there now goes on from that. Files never get shorter
 * than what a process has followed: shorter ones are an older copy, or a cut, and a record added to them would take a
 * place that was given away already.
 */
import type { Head } from "../../ledger/record.ts";
import type { Base } from "../logged/checkpoint.ts";
import type { Cursor } from "./follow.ts";
import type { ReadJournal } from "./recover.ts";

export interface LogStanding {
  head: Head;
  size: number;
  generation: number;
  journal_size: number;
  crc: number;
}

export function standingOf({ head, ledger_size: size, generation, journal_size, crc }: Cursor): LogStanding {
  return { head, size, generation, journal_size, crc };
}

/** Whether the journals still have the block behind which the process stood; one taken in has the ledger's word. */
export function isContinued(
  { generation, journal_size, crc }: LogStanding,
  base: Base,
  journals: readonly ReadJournal[],
): boolean {
  if (generation <= base.generation) return true;
  const journal = journals.find((found) => found.generation === generation);
  return journal?.parsed.items.some((item) => item.to === journal_size && item.crc === crc) ?? false;
}
