/** Reads files that are usually missing, at paths that an agent controls. An exception costs more than the check. */
import { closeSync, constants, fstatSync, openSync, readFileSync, readSync, statSync } from "node:fs";

// Opening a pipe waits for its writer. Windows does not have this flag.
const FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

/** These three return null for a file that is missing, is not a plain file, or cannot be read. */
export const readTextOrNull = (path: string): string | null =>
  readPlainFile(path, (file) => readFileSync(file, "utf8"));

export const readBytesOrNull = (path: string): Buffer | null =>
  readPlainFile(path, (file) => readFileSync(file));

/** The first so many bytes. */
export const readStartOrNull = (path: string, bytes: number): string | null =>
  readPlainFile(path, (file) => {
    const start = Buffer.alloc(bytes);
    return start.toString("utf8", 0, readSync(file, start));
  });

function readPlainFile<T>(path: string, read: (descriptor: number) => T): T | null {
  let descriptor: number | undefined;
  try {
    if (!statSync(path, { throwIfNoEntry: false })?.isFile()) return null;
    descriptor = openSync(path, FLAGS);
    // Another file can be there by now.
    return fstatSync(descriptor).isFile() ? read(descriptor) : null;
  } catch {
    return null;
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}
