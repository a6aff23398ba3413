/** Pins the ledger and journals of a files store: holds them open at their current lengths. */
import type { BackupFile } from "../../govern/port/store.ts";
import { type DiskOps, errorCode } from "../journal/disk.ts";
import type { OpenForCopy, PinnedLog } from "../journal/log.ts";
import { journalName, journalPath, ledgerPath } from "./paths.ts";
import type { LogCursor } from "./tail-reader.ts";

/** Runs under the lock with an up-to-date view. The files never change before these lengths. */
export async function pinFiles(
  disk: DiskOps,
  folder: string,
  cursor: LogCursor,
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
      // The checkpoint already contains older journals.
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
