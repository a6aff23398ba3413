/** The default store: an append-only ledger file, a journal and a checkpoint in one folder. */
import { type Disk, makeFolder, nodeDisk } from "../logged/disk.ts";
import { besideModule, Helper } from "../logged/helper.ts";
import { LoggedStore } from "../logged/store.ts";
import type { Store } from "../port.ts";
import { FilesLog } from "./log.ts";
import { checkpointPath } from "./paths.ts";

type Warn = (message: string, fields?: Record<string, unknown>) => void;

export async function openFilesStore(folder: string, warn: Warn, disk: Disk = nodeDisk): Promise<Store> {
  await makeFolder(disk, folder);
  return LoggedStore.open({
    folder,
    checkpoint_path: checkpointPath(folder),
    disk,
    warn,
    helper: new Helper(besideModule(import.meta.url, "worker"), folder),
    makeLog: (locate) => new FilesLog({ disk, folder, locate, warn }),
  });
}
