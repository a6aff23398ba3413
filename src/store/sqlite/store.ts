/** The sqlite store: ledger and journal in one database, the checkpoint in another beside it. */
import { type Disk, makeFolder, nodeDisk } from "../logged/disk.ts";
import { besideModule, Helper } from "../logged/helper.ts";
import { LoggedStore } from "../logged/store.ts";
import type { Store } from "../port.ts";
import { SqliteLog } from "./log.ts";
import { checkpointPath, databasePath } from "./paths.ts";

type Warn = (message: string, fields?: Record<string, unknown>) => void;

export async function openSqliteStore(folder: string, warn: Warn, disk: Disk = nodeDisk): Promise<Store> {
  await makeFolder(disk, folder);
  const helper = new Helper(besideModule(import.meta.url, "worker"), folder);
  return LoggedStore.open({
    folder,
    checkpoint_path: checkpointPath(folder),
    disk,
    warn,
    helper,
    makeLog: () => new SqliteLog({ disk, folder, path: databasePath(folder), helper, warn }),
  });
}
