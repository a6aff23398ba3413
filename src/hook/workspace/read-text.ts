/** Reads a file that is usually missing. An exception costs more than the check. */
import { readFileSync, statSync } from "node:fs";

/** Null for a file that is missing or cannot be read. Reading a pipe would wait for its writer. */
export function readTextOrNull(path: string): string | null {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isFile() ? readFileSync(path, "utf8") : null;
  } catch {
    return null;
  }
}
