/** Where the resident process has its socket, and who may reach it. The directory's mode authenticates the caller. */
import { chmodSync, lstatSync, mkdirSync } from "node:fs";
import { join } from "node:path";

export const SOCKET_NAME = "hook.sock";

export const residentFolder = (folder: string): string => join(folder, "resident");

/** Makes the directory, or explains why it is not safe: another user owns it or can open it. */
export function prepareFolder(folder: string): string {
  const own = residentFolder(folder);
  mkdirSync(own, { recursive: true, mode: 0o700 });
  const found = lstatSync(own);
  if (!found.isDirectory()) throw new Error(`${own}: is not a directory`);
  if (found.uid !== process.getuid?.()) throw new Error(`${own}: belongs to another user`);
  if ((found.mode & 0o077) !== 0) chmodSync(own, 0o700);
  return own;
}
