/** Reads a file that is usually missing. An exception costs more than the check. */
import { existsSync, readFileSync } from "node:fs";

/** Null for a file that is missing or cannot be read. */
export function readTextOrNull(path: string): string | null {
  try {
    return existsSync(path) ? readFileSync(path, "utf8") : null;
  } catch {
    return null;
  }
}
