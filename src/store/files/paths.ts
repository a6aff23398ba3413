/** File names in the data directory of a files store. */
import { join } from "node:path";

export const ledgerPath = (folder: string): string => join(folder, "ledger.jsonl");
export const lockPath = (folder: string): string => join(folder, "lock.db");
export const checkpointPath = (folder: string): string => join(folder, "state.db");
export const journalName = (generation: number): string => `journal-${generation}.jsonl`;
export const journalPath = (folder: string, generation: number): string =>
  join(folder, journalName(generation));

const JOURNAL = /^journal-([1-9][0-9]*)\.jsonl$/;

/** Returns the generation in a journal's file name, or undefined for any other file. */
export function journalGeneration(name: string): number | undefined {
  const match = JOURNAL.exec(name);
  return match === null ? undefined : Number(match[1]);
}
