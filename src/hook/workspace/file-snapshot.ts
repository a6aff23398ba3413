/**
 * Saves files before an edit, byte for byte, and restores them. `state` is compared between two readings. `content` is
 * the data for a restore, and is read only before the call.
 */
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmdirSync,
  rmSync,
  type Stats,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { hexHash } from "./hash.ts";

/**
 * `link`: the target if the path itself is a symbolic link; bytes and mode are those of the target file. `hard_link`:
 * the inode if the file has other names.
 */
type FileState =
  | { exists: false }
  | { exists: true; folder: true }
  | { exists: true; sha256: string; mode: number; link?: string; hard_link?: string };
type PlainFileState = Extract<FileState, { sha256: string }>;

export interface FileSnapshot {
  state: Record<string, FileState>;
  content?: Record<string, string>;
}

/** Size limit of all contents together, which travel in one request body. */
const MAX_CONTENT = 700_000;
/** Permissions including the setuid, setgid and sticky bits. */
const MODE_BITS = 0o7777;
const inodeOf = ({ dev, ino }: Stats): string => `${dev}:${ino}`;

/** A path with a trailing slash names a directory. Only its existence is recorded. */
const namesFolder = (path: string): boolean => path.endsWith("/");

/** Directories that writing this file would create, each with a trailing slash. */
export function missingDirectories(path: string): string[] {
  const folders: string[] = [];
  for (let folder = dirname(path); !existsSync(folder); folder = dirname(folder)) folders.push(`${folder}/`);
  return folders;
}

export function snapshotFiles(paths: readonly string[], keep: boolean): FileSnapshot {
  const state: Record<string, FileState> = {};
  const content: Record<string, string> = {};
  for (const path of paths) {
    const found = statSync(path, { throwIfNoEntry: false });
    const itself = lstatSync(path, { throwIfNoEntry: false });
    if (itself === undefined) state[path] = { exists: false };
    else if (namesFolder(path) && found?.isDirectory()) state[path] = { exists: true, folder: true };
    else if (!found?.isFile()) throw new Error(`${path} is not a regular file`);
    else {
      const bytes = readFileSync(path);
      const link = itself.isSymbolicLink() ? { link: readlinkSync(path) } : {};
      const hard_link = found.nlink > 1 ? { hard_link: inodeOf(found) } : {};
      state[path] = {
        exists: true,
        sha256: hexHash(bytes),
        mode: found.mode & MODE_BITS,
        ...link,
        ...hard_link,
      };
      if (keep) content[path] = zlib().gzipSync(bytes).toString("base64");
    }
  }
  const size = Object.values(content).reduce((sum, kept) => sum + kept.length, 0);
  if (size > MAX_CONTENT) throw new Error("the files are too large to save");
  return keep ? { state, content } : { state };
}

/** Restores saved files and removes files and directories that did not exist. Throws if anything remains. */
export function restoreFiles({ state, content = {} }: FileSnapshot): void {
  const problems: string[] = [];
  for (const [path, was] of Object.entries(state)) {
    if (namesFolder(path)) continue;
    if (!was.exists) rmSync(path, { force: true });
    else if ("sha256" in was) problems.push(...restoreFile(path, was, content[path]));
  }
  const made = Object.keys(state).filter((path) => namesFolder(path) && !state[path]!.exists);
  // The longest path is the innermost directory.
  for (const folder of made.sort((a, b) => b.length - a.length)) problems.push(...removeFolder(folder));
  if (problems.length > 0) throw new Error(problems.join("; "));
}

function removeFolder(folder: string): string[] {
  try {
    rmdirSync(folder);
    return [];
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return [];
    if (code === "ENOTEMPTY" || code === "EEXIST")
      return ["a directory that the edit created contains other files, so it remains"];
    throw error;
  }
}

/** Returns the problems of an incomplete restore. */
function restoreFile(path: string, was: PlainFileState, kept: string | undefined): string[] {
  if (kept === undefined) throw new Error(`the original of ${path} was not saved`);
  const bytes = zlib().gunzipSync(Buffer.from(kept, "base64"));
  if (hexHash(bytes) !== was.sha256) throw new Error(`the saved copy of ${path} is damaged`);
  mkdirSync(dirname(path), { recursive: true });
  if (was.link !== undefined && linkedAgain(path, was.link)) return [];
  // A symbolic link stays, and its target is written.
  const target = existsSync(path) ? realpathSync(path) : path;
  const now = statSync(target, { throwIfNoEntry: false });
  if (was.hard_link !== undefined && now !== undefined && inodeOf(now) === was.hard_link) {
    writeInPlace(target, bytes, was.mode);
    return [];
  }
  replaceFile(target, bytes, was.mode, now);
  return was.hard_link === undefined
    ? []
    : ["the file lost the hard link to its other name; link the two again"];
}

/** Keeps the inode, and so the file's other names and its owner. */
function writeInPlace(target: string, bytes: Buffer, mode: number): void {
  chmodSync(target, mode | 0o200);
  writeFileSync(target, bytes);
  // Writing clears the setuid and setgid bits.
  chmodSync(target, mode);
}

/** Replaces the file atomically and keeps its owner. In a directory that is not writable, writes the file in place. */
function replaceFile(target: string, bytes: Buffer, mode: number, now: Stats | undefined): void {
  const fresh = `${target}.${process.pid}.svc-restore`;
  try {
    writeFileSync(fresh, bytes, { mode: 0o600 });
    const { uid, gid } = statSync(fresh);
    if (now !== undefined && (now.uid !== uid || now.gid !== gid)) chownSync(fresh, now.uid, now.gid);
    chmodSync(fresh, mode);
    renameSync(fresh, target);
  } catch (error) {
    rmSync(fresh, { force: true });
    if (!/^(?:EPERM|EACCES)$/.test((error as NodeJS.ErrnoException).code ?? "") || now?.nlink !== 1)
      throw error;
    writeInPlace(target, bytes, mode);
  }
}

/**
 * Recreates a symbolic link that was removed or replaced. Its target was not changed then and may be in use by others.
 */
function linkedAgain(path: string, link: string): boolean {
  const itself = lstatSync(path, { throwIfNoEntry: false });
  if (itself?.isSymbolicLink() && readlinkSync(path) === link) return false;
  rmSync(path, { force: true });
  symlinkSync(link, path);
  return true;
}

/** Loaded on use, like the hashes. */
const zlib = () => process.getBuiltinModule("node:zlib");
