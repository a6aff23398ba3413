/** Directories of the hook's own state, for its user alone. */
import { chmodSync, lstatSync, mkdirSync } from "node:fs";

const FOLDER_MODE = 0o700;

/** Makes the directory, or explains why it is not safe: another user owns it, or it is not a directory. */
export function makeOwnFolder(folder: string): string {
  mkdirSync(folder, { recursive: true, mode: FOLDER_MODE });
  const found = lstatSync(folder);
  if (!found.isDirectory()) throw new Error(`${folder}: is not a directory`);
  if (process.getuid !== undefined && found.uid !== process.getuid())
    throw new Error(`${folder}: belongs to another user`);
  if (process.platform !== "win32" && (found.mode & 0o077) !== 0) chmodSync(folder, FOLDER_MODE);
  return folder;
}
