/** The sqlite store: ledger and journal in one database, the checkpoint in another beside it. */
import type { Store } from "../../port/store.ts";
import { entryModule } from "../../process/package.ts";
import { makeFolder } from "../logged/disk.ts";
import { threadHelper } from "../logged/side-thread.ts";
import { LoggedStore, type LoggedStoreOptions, withDefaults } from "../logged/store.ts";
import { SqliteLog } from "./log.ts";
import { databasePath, sqliteCheckpointPath } from "./paths.ts";

type Warn = (message: string, fields?: Record<string, unknown>) => void;

export async function openSqliteStore(
  folder: string,
  warn: Warn,
  options: Partial<LoggedStoreOptions> = {},
): Promise<Store> {
  const parts = withDefaults(() => threadHelper(entryModule("store/sqlite/worker"), folder), options);
  const { disk, helper } = parts;
  await makeFolder(disk, folder);
  return LoggedStore.open({
    ...parts,
    folder,
    checkpoint_path: sqliteCheckpointPath(folder),
    warn,
    makeLog: () => new SqliteLog({ disk, folder, path: databasePath(folder), helper, warn }),
  });
}
