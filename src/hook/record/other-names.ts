/** The other names of a file with several, found by looking through its workspace. */
import { type Dirent, lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { inodeNameOf } from "./path-state.ts";

/** A larger workspace is looked through in part. */
const MAX_ENTRIES = 50_000;

/** Full paths of every name of the file below the directory. `links`: how many names it has. */
export function namesOfInode(root: string, inode: string, links: number): string[] {
  const names: string[] = [];
  const folders = [root];
  let seen = 0;
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop())
    for (const entry of entriesOf(folder)) {
      if (names.length === links || ++seen > MAX_ENTRIES) return names;
      const path = join(folder, entry.name);
      if (entry.isDirectory()) folders.push(path);
      else if (entry.isFile() && inodeAt(path) === inode) names.push(path);
    }
  return names;
}

function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

function inodeAt(path: string): string | null {
  const found = lstatSync(path, { throwIfNoEntry: false });
  return found === undefined ? null : inodeNameOf(found);
}
