/**
 * A copy of one moment while others go on. What is only ever added to (the ledger, the journals) is noted under the lock
 * and read afterwards, up to there; the checkpoint, which moves, is held by a read transaction. So the lock is held for as
 * long as it takes to look, however large the store is.
 */
import { basename, join } from "node:path";
import { backup } from "@photostructure/sqlite";
import { LIMITS } from "../../kernel/limits.ts";
import type { Backup } from "../../port/store.ts";
import { type Base, readBase } from "./checkpoint.ts";
import type { Committer } from "./committer.ts";
import { closeDatabase, type Database, openDatabase, whenFree } from "./connection.ts";
import type { Disk } from "./disk.ts";
import type { Log, OpenForCopy, PinnedLog } from "./log.ts";
import type { Mirror } from "./mirror.ts";

interface BackupParts {
  log: Log;
  mirror: Mirror;
  committer: Committer;
  disk: Disk;
  checkpoint_path: string;
}

/** Copied at a time, in a thread. */
const PAGES = 10_000;

export async function takeBackup(parts: BackupParts, scratch: string): Promise<Backup> {
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
  const until = performance.now() + LIMITS.store_deadline_ms;
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

/** All of one moment, and durable. */
async function pin({ log, mirror, committer }: BackupParts, checkpoint: Database, open: OpenForCopy) {
  let found: { head: Mirror["head"]; base: Base; pinned: PinnedLog } | undefined;
  await committer.exclusively(async () => {
    // The log before the checkpoint: a journal goes only once the checkpoint has it.
    const pinned = await log.pin(open);
    checkpoint.exec("BEGIN");
    found = { head: { ...mirror.head }, base: readBase(checkpoint)!, pinned };
  });
  return found!;
}
