/** The sqlite store: ledger and journal in one database, the checkpoint in another. */
import { entryModule } from "../../child-process/package-files.ts";
import type { StateStore } from "../../govern/port/store.ts";
import { startWorkerHandle } from "../journal/checkpoint/worker-handle.ts";
import { createDataDirectory } from "../journal/disk.ts";
import { LoggedStore, type LoggedStoreOptions, withDefaults } from "../journal/store.ts";
import { SqliteLog } from "./log.ts";
import { databasePath, sqliteCheckpointPath } from "./paths.ts";

type Warn = (message: string, fields?: Record<string, unknown>) => void;

export async function openSqliteStore(
  folder: string,
  warn: Warn,
  options: Partial<LoggedStoreOptions> = {},
): Promise<StateStore> {
  const parts = withDefaults(() => startWorkerHandle(entryModule("store/sqlite/worker"), folder), options);
  const { disk, helper } = parts;
  await createDataDirectory(disk, folder);
  return LoggedStore.open({
    ...parts,
    folder,
    checkpoint_path: sqliteCheckpointPath(folder),
    warn,
    makeLog: () => new SqliteLog({ disk, folder, path: databasePath(folder), helper, warn }),
  });
}
