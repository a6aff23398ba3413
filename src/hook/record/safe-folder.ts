/**
 * Reaches a path of a workspace without following a link: every directory on the way is opened separately, and the
 * last name is used relative to the open directory. A directory that is swapped for a link in the meantime has no effect.
 * Where the system has no names for open directories, every directory is looked at before each step instead.
 */
import { closeSync, constants, existsSync, lstatSync, openSync, realpathSync } from "node:fs";
import { fullPath, pathParts } from "./path-state.ts";

/** Opens a directory by name alone, without the right to read it (Linux). */
const O_PATH = 0o10000000;
const OPEN_FOLDERS = "/proc/self/fd";
/** Opens a directory, and never follows a link. */
export const OPEN_BY_NAME = O_PATH | (constants.O_DIRECTORY ?? 0) | (constants.O_NOFOLLOW ?? 0);

/** A part of the path is a link or not a directory. */
export class PathBlocked extends Error {}

/** The last name of a path in its open directory. `sibling` names another file in the same directory. */
export interface SafePlace {
  full: string | Buffer;
  folder: string | Buffer;
  sibling(name: string): string | Buffer;
}

export class SafeFolder {
  private readonly root: string;
  private readonly isOpenable = process.platform === "linux" && existsSync(OPEN_FOLDERS);

  /** Throws if the directory is gone or was replaced by a link. */
  constructor(root: string) {
    this.root = root;
    if (realpathSync(root) !== root) throw new PathBlocked("a link is on the way to the workspace");
  }

  /** Null if a directory on the way is missing. */
  at<T>(path: string, use: (place: SafePlace) => T): T | null {
    const parts = pathParts(path);
    const name = parts.pop()!;
    return this.isOpenable ? this.opened(parts, name, use) : this.looked(path, parts, use);
  }

  private opened<T>(
    folders: readonly (string | Buffer)[],
    name: string | Buffer,
    use: (place: SafePlace) => T,
  ) {
    let descriptor = openSync(this.root, OPEN_BY_NAME);
    try {
      for (const folder of folders) {
        const inner = openInner(joined(`${OPEN_FOLDERS}/${descriptor}`, folder));
        if (inner === null) return null;
        closeSync(descriptor);
        descriptor = inner;
      }
      const folder = `${OPEN_FOLDERS}/${descriptor}`;
      return use({ full: joined(folder, name), folder, sibling: (other) => `${folder}/${other}` });
    } finally {
      closeSync(descriptor);
    }
  }

  private looked<T>(path: string, folders: readonly (string | Buffer)[], use: (place: SafePlace) => T) {
    let at: string | Buffer = this.root;
    for (const folder of folders) {
      at = joined(at, folder);
      const found = lstatSync(at, { throwIfNoEntry: false });
      if (found === undefined) return null;
      if (!found.isDirectory()) throw new PathBlocked("a link or a file is on the way");
    }
    const folder = at;
    return use({ full: fullPath(this.root, path), folder, sibling: (other) => joined(folder, other) });
  }
}

/** Null if it is missing. */
function openInner(path: string | Buffer): number | null {
  try {
    return openSync(path, OPEN_BY_NAME);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return null;
    if (code === "ENOTDIR" || code === "ELOOP") throw new PathBlocked("a link or a file is on the way");
    throw error;
  }
}

function joined(folder: string | Buffer, name: string | Buffer): string | Buffer {
  if (typeof folder === "string" && typeof name === "string") return `${folder}/${name}`;
  return Buffer.concat([Buffer.from(folder as string), Buffer.from("/"), Buffer.from(name as string)]);
}
