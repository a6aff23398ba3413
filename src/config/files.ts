/**
 * Reads and writes the operator's files. Reads only regular files, so that a pipe or device cannot hang the process.
 * Writes atomically.
 */
import { createHash, randomBytes } from "node:crypto";
import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from "node:fs";
import { type FileHandle, mkdir, open, readdir, realpath, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { SvcError } from "../kernel/errors.ts";

/** Larger than any file edited by hand. A larger file is a mistake or an attack. */
const MAX_FILE_BYTES = 64 * 1_048_576;
/** Without O_NONBLOCK, opening a pipe waits for its writer. */
const READ = constants.O_RDONLY | constants.O_NONBLOCK;

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: "does not exist",
  EACCES: "cannot be read: permission denied",
  EPERM: "cannot be read: permission denied",
  EISDIR: "is a directory, not a file",
  ENOTDIR: "does not exist: a part of its path is a file",
  ELOOP: "is a symbolic link that leads to itself",
  ENXIO: "is a socket, not a file",
  ENAMETOOLONG: "has a name that is too long for this file system",
  EMFILE: "cannot be read: too many open files",
  EIO: "cannot be read: the disk reports an error",
  ENOSPC: "cannot be written: the disk is full",
  EROFS: "cannot be written: the disk is read-only",
};

/** Describes a failed file operation, without the path. */
export function fileProblem(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  if (typeof code === "string" && Object.hasOwn(REASONS, code)) return REASONS[code]!;
  return `cannot be used: ${typeof code === "string" ? code : (error as Error).message}`;
}

export function fileError(path: string, error: unknown): SvcError {
  return error instanceof SvcError
    ? error
    : new SvcError("invalid", `${path}: ${fileProblem(error)}`, { cause: error });
}

/** Reason why the path cannot be read as a text file, or undefined if it can. */
export function unreadableReason(stats: Stats, maxBytes = MAX_FILE_BYTES): string | undefined {
  if (stats.isDirectory()) return "is a directory, not a file";
  if (stats.isFIFO()) return "is a named pipe, not a file";
  if (stats.isSocket()) return "is a socket, not a file";
  if (stats.isCharacterDevice() || stats.isBlockDevice()) return "is a device, not a file";
  if (!stats.isFile()) return "is not a regular file";
  if (stats.size > maxBytes) return `is larger than ${maxBytes} bytes`;
  return undefined;
}

export function decodeText(path: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new SvcError("invalid", `${path}: is not UTF-8 text`);
  }
}

/** Returns the text of a regular UTF-8 file. Throws a SvcError that names the path. */
export async function readTextFile(path: string, maxBytes = MAX_FILE_BYTES): Promise<string> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(path, READ);
    const problem = unreadableReason(await handle.stat(), maxBytes);
    if (problem !== undefined) throw new SvcError("invalid", `${path}: ${problem}`);
    return decodeText(path, await handle.readFile());
  } catch (error) {
    throw fileError(path, error);
  } finally {
    await handle?.close();
  }
}

export function readTextFileSync(path: string, maxBytes = MAX_FILE_BYTES): string {
  let fd: number | undefined;
  try {
    fd = openSync(path, READ);
    const problem = unreadableReason(fstatSync(fd), maxBytes);
    if (problem !== undefined) throw new SvcError("invalid", `${path}: ${problem}`);
    return decodeText(path, readFileSync(fd));
  } catch (error) {
    throw fileError(path, error);
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

/**
 * Replaces a file atomically: readers see the old text or the new one, even after a power failure. Follows a symbolic
 * link and replaces its target.
 */
export async function writeFileAtomic(path: string, text: string, mode = 0o600): Promise<void> {
  const target = await realpath(path).catch(() => path);
  const folder = dirname(target);
  const temporary = join(folder, `.${randomBytes(8).toString("hex")}.tmp`);
  try {
    await mkdir(folder, { recursive: true });
    const handle = await open(temporary, "wx", mode);
    try {
      await handle.chmod(mode);
      // Keep the owner, so that an edit by root does not lock out the service's account.
      const before = await stat(target).catch(() => undefined);
      if (before !== undefined) await handle.chown(before.uid, before.gid).catch(() => undefined);
      await handle.writeFile(text);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, target);
    await syncFolder(folder);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined);
    throw fileError(path, error);
  }
}

/** Makes the names in a folder durable, after a file in it was created, renamed or removed. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Returns a value that changes when the file may have changed, or `missing` without a file. */
export function statStamp(stats: Stats | undefined): string {
  if (stats === undefined) return "missing";
  return `${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeMs}:${stats.ctimeMs}`;
}

/** Returns the stamp of a file, or of all YAML files below a directory. Used to detect edits. */
export async function pathStamp(path: string): Promise<string> {
  const stats = await stat(path).catch(() => undefined);
  if (!stats?.isDirectory()) return statStamp(stats);
  const hash = createHash("sha256");
  const seen = new Set<string>();
  const waiting = [path];
  for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
    const real = await realpath(folder).catch(() => folder as string);
    if (seen.has(real)) continue;
    seen.add(real);
    for (const name of (await readdir(folder).catch(() => [] as string[])).sort()) {
      if (name.startsWith(".")) continue;
      const at = join(folder, name);
      const entry = await stat(at).catch(() => undefined);
      if (entry?.isDirectory()) waiting.push(at);
      else if (/\.ya?ml$/.test(name)) hash.update(`${at}\0${statStamp(entry)}\n`);
    }
  }
  return hash.digest("hex");
}
