/**
 * A consistent copy of the store while other work continues. Under the lock, the backup records the lengths of the
 * append-only files (ledger and journals) and copies them afterwards. A read transaction pins the checkpoint. So the
 * lock is held only briefly, however large the store is.
 */
import { basename, join } from "node:path";
import { backup } from "@photostructure/sqlite";
import type { StoreBackup } from "../../govern/port/store.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { type CheckpointPosition, readBase } from "./checkpoint/checkpoint.ts";
import type { LogCommitter } from "./committer.ts";
import { closeDatabase, openDatabase, type SqliteDatabase, whenFree } from "./connection.ts";
import type { DiskOps } from "./disk.ts";
import type { OpenForCopy, PinnedLog, StoreLog } from "./log.ts";
import type { StoreView } from "./store-view.ts";

interface BackupParts {
  log: StoreLog;
  storeView: StoreView;
  committer: LogCommitter;
  disk: DiskOps;
  checkpoint_path: string;
}

/** Pages per copy step, in a thread. */
const PAGES = 10_000;

export async function takeBackup(parts: BackupParts, scratch: string): Promise<StoreBackup> {
  const { disk, checkpoint_path } = parts;
  const opened: number[] = [];
  const open: OpenForCopy = async (path) => {
    const fd = await disk.open(path, "r");
    opened.push(fd);
    return fd;
  };
  const close = async (): Promise<void> => {
    for (const fd of opened.splice(0)) await disk.close(fd);
  };
  const connect = () => openDatabase(checkpoint_path, { synchronous: "FULL", autocheckpoint: false });
  const until = performance.now() + SERVICE_LIMITS.store_deadline_ms;
  const checkpoint = await whenFree(connect, until, checkpoint_path);
  try {
    const { head, base, pinned } = await pin(parts, checkpoint, open);
    const copy = join(scratch, basename(checkpoint_path));
    await backup(checkpoint, copy, { rate: PAGES });
    const files = await pinned(base, scratch);
    const fd = await open(copy);
    return { head, files: [...files, { name: basename(copy), fd, size: disk.facts(fd).size }], close };
  } catch (error) {
    await close();
    throw error;
  } finally {
    closeDatabase(checkpoint);
  }
}

/** Pins everything at one moment, and durably. */
async function pin(
  { log, storeView, committer }: BackupParts,
  checkpoint: SqliteDatabase,
  open: OpenForCopy,
) {
  let found: { head: StoreView["head"]; base: CheckpointPosition; pinned: PinnedLog } | undefined;
  await committer.exclusively(async () => {
    // The log before the checkpoint: a journal disappears only once the checkpoint contains it.
    const pinned = await log.pin(open);
    checkpoint.exec("BEGIN");
    found = { head: { ...storeView.head }, base: readBase(checkpoint)!, pinned };
  });
  return found!;
}
