/** The default store: an append-only ledger file, a journal and a checkpoint in one directory. */
import { entryModule } from "../../child-process/package-files.ts";
import type { StateStore } from "../../govern/port/store.ts";
import { startWorkerHandle } from "../journal/checkpoint/worker-handle.ts";
import { createDataDirectory } from "../journal/disk.ts";
import { LoggedStore, type LoggedStoreOptions, withDefaults } from "../journal/store.ts";
import { FilesLog } from "./log.ts";
import { checkpointPath } from "./paths.ts";

type Warn = (message: string, fields?: Record<string, unknown>) => void;

export async function openFilesStore(
  folder: string,
  warn: Warn,
  options: Partial<LoggedStoreOptions> = {},
): Promise<StateStore> {
  const parts = withDefaults(() => startWorkerHandle(entryModule("store/files/worker"), folder), options);
  const { disk } = parts;
  await createDataDirectory(disk, folder);
  return LoggedStore.open({
    ...parts,
    folder,
    checkpoint_path: checkpointPath(folder),
    warn,
    makeLog: (locate) => new FilesLog({ disk, folder, locate, warn }),
  });
}
