/** The default store: an append-only ledger file, a journal and a checkpoint in one folder. */
import type { Store } from "../../port/store.ts";
import { entryModule } from "../../process/package.ts";
import { makeFolder } from "../logged/disk.ts";
import { threadHelper } from "../logged/side-thread.ts";
import { LoggedStore, type LoggedStoreOptions, withDefaults } from "../logged/store.ts";
import { FilesLog } from "./log.ts";
import { checkpointPath } from "./paths.ts";

type Warn = (message: string, fields?: Record<string, unknown>) => void;

export async function openFilesStore(
  folder: string,
  warn: Warn,
  options: Partial<LoggedStoreOptions> = {},
): Promise<Store> {
  const parts = withDefaults(() => threadHelper(entryModule("store/files/worker"), folder), options);
  const { disk } = parts;
  await makeFolder(disk, folder);
  return LoggedStore.open({
    ...parts,
    folder,
    checkpoint_path: checkpointPath(folder),
    warn,
    makeLog: (locate) => new FilesLog({ disk, folder, locate, warn }),
  });
}
