/** The single steps of a restore. None of them follows a link. */
import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  ftruncateSync,
  futimesSync,
  lchmodSync,
  openSync,
  renameSync,
  rmdirSync,
  rmSync,
  type Stats,
  writeSync,
} from "node:fs";
import { nodeCrypto } from "./builtin-modules.ts";
import type { RecordedFile } from "./path-state.ts";
import { OPEN_BY_NAME, type SafePlace } from "./safe-folder.ts";

/** All rights of the owner. */
export const OWNER_ALL = 0o700;
/** Zero would mean that the time is not known. */
const LONG_AGO_S = 1;

export function removeFolder({ full }: SafePlace): void {
  try {
    rmdirSync(full);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return;
    if (code !== "ENOTEMPTY" && code !== "EEXIST") throw error;
    throw new Error("the directory contains other files, so it remains");
  }
}

/** Makes the new file next to the path and moves it there in one step. */
export function replaceWith(
  { full, sibling }: SafePlace,
  now: Stats | undefined,
  make: (fresh: string | Buffer) => void,
): void {
  const fresh = sibling(`.${nodeCrypto().randomBytes(8).toString("hex")}.svc-restore`);
  try {
    make(fresh);
    if (now?.isDirectory()) rmdirSync(full);
    renameSync(fresh, full);
    // Two names of one file: renaming does nothing then.
    rmSync(fresh, { force: true });
  } catch (error) {
    rmSync(fresh, { force: true });
    throw error;
  }
}

/** `old`: gives the file a time long ago. Git then compares the contents of what its index lists. */
export function writeFresh(fresh: string | Buffer, bytes: Buffer, before: RecordedFile, old: boolean): void {
  const descriptor = openSync(fresh, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600);
  try {
    writeAll(descriptor, bytes);
    settleOwner(descriptor, before);
    if (old) futimesSync(descriptor, LONG_AGO_S, LONG_AGO_S);
  } finally {
    closeSync(descriptor);
  }
}

/** Keeps the inode, and so the file's other names. */
export function writeInPlace(full: string | Buffer, bytes: Buffer, before: RecordedFile): void {
  const safe = constants.O_NOFOLLOW ?? 0;
  const reading = openSync(full, constants.O_RDONLY | safe);
  try {
    fchmodSync(reading, before.mode | 0o200);
  } finally {
    closeSync(reading);
  }
  const descriptor = openSync(full, constants.O_WRONLY | safe);
  try {
    writeAll(descriptor, bytes);
    ftruncateSync(descriptor, bytes.length);
    settleOwner(descriptor, before);
  } finally {
    closeSync(descriptor);
  }
}

function writeAll(descriptor: number, bytes: Buffer): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at, bytes.length - at, at);
}

/** Changing the owner clears the setuid bit, so the mode comes last. */
function settleOwner(
  descriptor: number,
  { mode, uid, gid }: Pick<RecordedFile, "mode" | "uid" | "gid">,
): void {
  const { uid: owner, gid: group } = fstatSync(descriptor);
  if (owner !== uid || group !== gid) fchownSync(descriptor, uid, gid);
  fchmodSync(descriptor, mode);
}

export function setFolderMode(
  full: string | Buffer,
  mode: number,
  owner?: Pick<RecordedFile, "mode" | "uid" | "gid">,
): void {
  const flags = constants.O_RDONLY | (constants.O_DIRECTORY ?? 0) | (constants.O_NOFOLLOW ?? 0);
  let descriptor: number;
  try {
    descriptor = openSync(full, flags);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EACCES") throw error;
    openToOwner(full);
    descriptor = openSync(full, flags);
  }
  try {
    if (owner === undefined) fchmodSync(descriptor, mode);
    else settleOwner(descriptor, { ...owner, mode });
  } finally {
    closeSync(descriptor);
  }
}

/** For an unreadable directory. Changes the open directory, even if a link takes its place. */
function openToOwner(full: string | Buffer): void {
  if (process.platform !== "linux") {
    lchmodSync(full, OWNER_ALL);
    return;
  }
  const descriptor = openSync(full, OPEN_BY_NAME);
  try {
    chmodSync(`/proc/self/fd/${descriptor}`, OWNER_ALL);
  } finally {
    closeSync(descriptor);
  }
}
