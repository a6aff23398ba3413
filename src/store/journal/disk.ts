/**
 * The file operations of the files and sqlite stores as one object, so that tests can fail, shorten or hang the k-th
 * call. Operations that can wait for the medium (writes, syncs, truncations) are asynchronous, so that a hung disk
 * never blocks the event loop. Reads of the page cache are synchronous.
 */
import * as fs from "node:fs";
import { dirname, resolve } from "node:path";
import { promisify } from "node:util";

export interface FileFacts {
  size: number;
  ino: number;
  /** 0 once no name leads to the file. */
  nlink: number;
}

export interface DiskOps {
  open(path: string, flags: string | number): Promise<number>;
  /** Opens an existing file, which never waits for the medium to write. */
  openNow(path: string, flags: number): number;
  close(fd: number): Promise<void>;
  /** Writes, or appends if the file was opened for appending. Can write fewer bytes than asked. */
  write(fd: number, bytes: Uint8Array, position: number | null): Promise<number>;
  datasync(fd: number): Promise<void>;
  sync(fd: number): Promise<void>;
  truncate(fd: number, size: number): Promise<void>;
  /** Sets the file's times to now: the cheapest call that fails on a frozen or read-only disk. */
  touch(fd: number): Promise<void>;
  unlink(path: string): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  mkdir(path: string): Promise<void>;
  list(path: string): Promise<string[]>;
  readAsync(fd: number, into: Uint8Array, position: number): Promise<number>;
  read(fd: number, into: Uint8Array, position: number): number;
  facts(fd: number): FileFacts;
  factsAt(path: string): FileFacts | undefined;
}

/** Read and append, without creating the file. */
export const EXISTING_APPEND = fs.constants.O_RDWR | fs.constants.O_APPEND;

/** Only the service's own user can access its files. */
const FILE_MODE = 0o600;
const FOLDER_MODE = 0o700;

const open = promisify(fs.open);
const write = promisify(fs.write) as (
  fd: number,
  bytes: Uint8Array,
  offset: number,
  length: number,
  position: number | null,
) => Promise<{ bytesWritten: number }>;
const read = promisify(fs.read) as (
  fd: number,
  into: Uint8Array,
  offset: number,
  length: number,
  position: number,
) => Promise<{ bytesRead: number }>;
const futimes = promisify(fs.futimes);

export const nodeDisk: DiskOps = {
  open: (path, flags) => open(path, flags, FILE_MODE),
  openNow: (path, flags) => fs.openSync(path, flags),
  close: promisify(fs.close),
  write: async (fd, bytes, position) => (await write(fd, bytes, 0, bytes.length, position)).bytesWritten,
  datasync: promisify(fs.fdatasync),
  sync: promisify(fs.fsync),
  truncate: promisify(fs.ftruncate),
  touch: (fd) => futimes(fd, Date.now() / 1000, Date.now() / 1000),
  unlink: promisify(fs.unlink),
  rename: promisify(fs.rename),
  mkdir: async (path) => {
    await promisify(fs.mkdir)(path, { recursive: true, mode: FOLDER_MODE });
  },
  list: (path) => promisify(fs.readdir)(path),
  readAsync: async (fd, into, position) => (await read(fd, into, 0, into.length, position)).bytesRead,
  read: (fd, into, position) => fs.readSync(fd, into, 0, into.length, position),
  facts: (fd) => fs.fstatSync(fd),
  factsAt: (path) => fs.statSync(path, { throwIfNoEntry: false }),
};

export function errorCode(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" ? code : undefined;
}

/** Continues a short write until the disk reports why it was short. */
export async function writeAll(
  disk: DiskOps,
  fd: number,
  bytes: Uint8Array,
  position: number | null,
): Promise<void> {
  let done = 0;
  while (done < bytes.length) {
    const written = await disk.write(fd, bytes.subarray(done), position === null ? null : position + done);
    if (written <= 0) throw Object.assign(new Error("the disk wrote no bytes"), { code: "EIO" });
    done += written;
  }
}

/** Reads the bytes of [from, to), or as many as the file has. */
export function readRange(disk: DiskOps, fd: number, from: number, to: number): Buffer {
  const bytes = Buffer.allocUnsafe(Math.max(0, to - from));
  let done = 0;
  while (done < bytes.length) {
    const got = disk.read(fd, bytes.subarray(done), from + done);
    if (got === 0) break;
    done += got;
  }
  return bytes.subarray(0, done);
}

export async function readRangeAsync(disk: DiskOps, fd: number, from: number, to: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(Math.max(0, to - from));
  let done = 0;
  while (done < bytes.length) {
    const got = await disk.readAsync(fd, bytes.subarray(done), from + done);
    if (got === 0) break;
    done += got;
  }
  return bytes.subarray(0, done);
}

/** Syncs a directory. Without this, a power cut can remove the name of a synced file. */
export async function syncDirectory(disk: DiskOps, path: string): Promise<void> {
  const fd = await disk.open(path, "r");
  try {
    await disk.sync(fd);
  } finally {
    await disk.close(fd);
  }
}

/** Creates the data directory if it is missing. */
export async function createDataDirectory(disk: DiskOps, path: string): Promise<void> {
  if (disk.factsAt(path) !== undefined) return;
  await disk.mkdir(path);
  // Without this, a power cut could remove the directory and every synced file in it.
  await syncDirectory(disk, dirname(resolve(path)));
}
