/** Reads a file without following a link, and only if it stays the same while it is read. */
import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from "node:fs";

const TRIES = 3;
// A pipe that took the file's place must not make the process wait.
const FLAGS = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

export type ReadContent = { bytes: Buffer; found: Stats } | "race" | "unreadable";

export function readContent(path: string | Buffer, max_bytes: number): ReadContent {
  let descriptor: number;
  try {
    descriptor = openSync(path, FLAGS);
  } catch {
    return "unreadable";
  }
  try {
    for (let n = 0; n < TRIES; n++) {
      const found = fstatSync(descriptor);
      if (!found.isFile() || found.size > max_bytes) return "race";
      const bytes = readWhole(descriptor, found.size);
      const after = fstatSync(descriptor);
      if (bytes !== null && after.mtimeMs === found.mtimeMs && after.ctimeMs === found.ctimeMs)
        return { bytes, found: after };
    }
    return "race";
  } catch {
    return "unreadable";
  } finally {
    closeSync(descriptor);
  }
}

/** Null if the file has another size by now. */
function readWhole(descriptor: number, size: number): Buffer | null {
  // One byte more shows a file that grew.
  const bytes = Buffer.allocUnsafe(size + 1);
  let at = 0;
  while (at <= size) {
    const n = readSync(descriptor, bytes, at, size + 1 - at, at);
    if (n === 0) break;
    at += n;
  }
  return at === size ? bytes.subarray(0, size) : null;
}
