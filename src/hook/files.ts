/**
 * Files as an edit found and left them, byte for byte, and putting them back. `state` is what counts when two looks
 * are compared; `content` is what a restore writes, and is read before the call alone.
 */
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { hexHash } from "./hash.ts";

/** `link`: what the path itself says where it is a symbolic link; bytes and mode are those of what it leads to. */
type FileState = { exists: false } | { exists: true; sha256: string; mode: number; link?: string };

export interface FileLook {
  state: Record<string, FileState>;
  content?: Record<string, string>;
}

/** Together they must fit into the body of one request. */
const MOST_CONTENT = 700_000;

export function lookAt(paths: readonly string[], keep: boolean): FileLook {
  const state: Record<string, FileState> = {};
  const content: Record<string, string> = {};
  for (const path of paths) {
    const found = statSync(path, { throwIfNoEntry: false });
    const itself = lstatSync(path, { throwIfNoEntry: false });
    if (itself === undefined) state[path] = { exists: false };
    else if (!found?.isFile()) throw new Error(`${path} is no plain file`);
    else {
      const bytes = readFileSync(path);
      const link = itself.isSymbolicLink() ? { link: readlinkSync(path) } : {};
      state[path] = { exists: true, sha256: hexHash(bytes), mode: found.mode & 0o777, ...link };
      if (keep) content[path] = zlib().gzipSync(bytes).toString("base64");
    }
  }
  const size = Object.values(content).reduce((sum, kept) => sum + kept.length, 0);
  if (size > MOST_CONTENT) throw new Error("the files are larger than what can be kept");
  return keep ? { state, content } : { state };
}

/** Writes what was there; each file whole or not at all. */
export function restore({ state, content = {} }: FileLook): void {
  for (const [path, was] of Object.entries(state)) {
    if (!was.exists) {
      rmSync(path, { force: true });
      continue;
    }
    const kept = content[path];
    if (kept === undefined) throw new Error(`what was in ${path} was not kept`);
    const bytes = zlib().gunzipSync(Buffer.from(kept, "base64"));
    if (hexHash(bytes) !== was.sha256) throw new Error(`what was kept of ${path} is damaged`);
    mkdirSync(dirname(path), { recursive: true });
    if (was.link !== undefined && linkedAgain(path, was.link)) continue;
    // A link stays one: what it leads to is written.
    const target = existsSync(path) ? realpathSync(path) : path;
    const fresh = `${target}.${process.pid}.svc-restore`;
    writeFileSync(fresh, bytes, { mode: was.mode });
    chmodSync(fresh, was.mode);
    renameSync(fresh, target);
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
