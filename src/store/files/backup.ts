/** The ledger and the journals of a files store, held open as they are now. */
import type { BackupFile } from "../../port/store.ts";
import { type Disk, errorCode } from "../logged/disk.ts";
import type { OpenForCopy, PinnedLog } from "../logged/log.ts";
import type { Cursor } from "./follow.ts";
import { journalName, journalPath, ledgerPath } from "./paths.ts";

/** Under the lock, with everything followed: nothing in front of these lengths is ever changed. */
export async function pinFiles(
  disk: Disk,
  folder: string,
  cursor: Cursor,
  open: OpenForCopy,
): Promise<PinnedLog> {
  const ledger: BackupFile = {
    name: "ledger.jsonl",
    fd: await open(ledgerPath(folder)),
    size: cursor.ledger_size,
  };
  const journals = new Map<number, BackupFile>();
  for (let generation = cursor.generation; ; generation--) {
    const fd = await open(journalPath(folder, generation)).catch((error: unknown) => {
      // Older ones were taken into the checkpoint.
      if (errorCode(error) !== "ENOENT") throw error;
      return undefined;
    });
    if (fd === undefined) break;
    const size = generation === cursor.generation ? cursor.journal_size : disk.facts(fd).size;
    journals.set(generation, { name: journalName(generation), fd, size });
  }
  return async (base) => {
    const needed = [...journals].filter(([generation]) => generation > base.generation);
    return [ledger, ...needed.map(([, file]) => file)];
  };
}
