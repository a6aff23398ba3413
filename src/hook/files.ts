/**
 * Files as an edit found and left them, byte for byte, and putting them back. `state` is what counts when two looks
 * are compared; `content` is what a restore writes, and is read before the call alone.
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
 * `link`: the target that the path itself names where it is a symbolic link; bytes and mode are those of the file that it
 * leads to. `hard_link`: the file's inode where it has other names, too.
 */
type FileState =
  | { exists: false }
  | { exists: true; folder: true }
  | { exists: true; sha256: string; mode: number; link?: string; hard_link?: string };
type PlainFileState = Extract<FileState, { sha256: string }>;

export interface FileLook {
  state: Record<string, FileState>;
  content?: Record<string, string>;
}

/** Together they must fit into the body of one request. */
const MOST_CONTENT = 700_000;
/** Permissions with the setuid, setgid and sticky bits. */
const MODE_BITS = 0o7777;
const inodeOf = ({ dev, ino }: Stats): string => `${dev}:${ino}`;

/** A path that ends in a slash names a folder: only whether it exists counts. */
const namesFolder = (path: string): boolean => path.endsWith("/");

/** The folders that writing this file would make, each with a slash at its end. */
export function foldersToMake(path: string): string[] {
  const folders: string[] = [];
  for (let folder = dirname(path); !existsSync(folder); folder = dirname(folder)) folders.push(`${folder}/`);
  return folders;
}

export function lookAt(paths: readonly string[], keep: boolean): FileLook {
  const state: Record<string, FileState> = {};
  const content: Record<string, string> = {};
  for (const path of paths) {
    const found = statSync(path, { throwIfNoEntry: false });
    const itself = lstatSync(path, { throwIfNoEntry: false });
    if (itself === undefined) state[path] = { exists: false };
    else if (namesFolder(path) && found?.isDirectory()) state[path] = { exists: true, folder: true };
    else if (!found?.isFile()) throw new Error(`${path} is no plain file`);
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
  if (size > MOST_CONTENT) throw new Error("the files are larger than what can be kept");
  return keep ? { state, content } : { state };
}

/** Writes the bytes that were there and removes files and folders that were not; throws where something is left. */
export function restore({ state, content = {} }: FileLook): void {
  const problems: string[] = [];
  for (const [path, was] of Object.entries(state)) {
    if (namesFolder(path)) continue;
    if (!was.exists) rmSync(path, { force: true });
    else if ("sha256" in was) problems.push(...restoreFile(path, was, content[path]));
  }
  const made = Object.keys(state).filter((path) => namesFolder(path) && !state[path]!.exists);
  // The longest path is the innermost folder.
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
      return ["a folder that the edit made holds other files, so it stays"];
    throw error;
  }
}

/** Returns what could not be restored. */
function restoreFile(path: string, was: PlainFileState, kept: string | undefined): string[] {
  if (kept === undefined) throw new Error(`what was in ${path} was not kept`);
  const bytes = zlib().gunzipSync(Buffer.from(kept, "base64"));
  if (hexHash(bytes) !== was.sha256) throw new Error(`what was kept of ${path} is damaged`);
  mkdirSync(dirname(path), { recursive: true });
  if (was.link !== undefined && linkedAgain(path, was.link)) return [];
  // A link stays one: what it leads to is written.
  const target = existsSync(path) ? realpathSync(path) : path;
  const now = statSync(target, { throwIfNoEntry: false });
  if (was.hard_link !== undefined && now !== undefined && inodeOf(now) === was.hard_link) {
    writeInPlace(target, bytes, was.mode);
    return [];
  }
  replaceFile(target, bytes, was.mode, now);
  return was.hard_link === undefined
    ? []
    : ["the file is no longer linked with its other name (a hard link); link the two again"];
}

/** Keeps the inode, and with it the file's other names and its owner. */
function writeInPlace(target: string, bytes: Buffer, mode: number): void {
  chmodSync(target, mode | 0o200);
  writeFileSync(target, bytes);
  // Writing clears the setuid and setgid bits.
  chmodSync(target, mode);
}

/** The file appears whole or not at all; its owner stays. */
function replaceFile(target: string, bytes: Buffer, mode: number, now: Stats | undefined): void {
  const fresh = `${target}.${process.pid}.svc-restore`;
  writeFileSync(fresh, bytes, { mode: 0o600 });
  try {
    const { uid, gid } = statSync(fresh);
    if (now !== undefined && (now.uid !== uid || now.gid !== gid)) chownSync(fresh, now.uid, now.gid);
    chmodSync(fresh, mode);
    renameSync(fresh, target);
  } catch (error) {
    rmSync(fresh, { force: true });
    if ((error as NodeJS.ErrnoException).code !== "EPERM" || now?.nlink !== 1) throw error;
    writeInPlace(target, bytes, mode);
  }
}

/** A link that was removed or replaced is made again. What it leads to was not touched then, and may be another's by now. */
function linkedAgain(path: string, link: string): boolean {
  const itself = lstatSync(path, { throwIfNoEntry: false });
  if (itself?.isSymbolicLink() && readlinkSync(path) === link) return false;
  rmSync(path, { force: true });
  symlinkSync(link, path);
  return true;
}

/** Loaded where it is used, as hashes are. */
const zlib = () => process.getBuiltinModule("node:zlib");
