/** Where a path lies, also one that does not exist yet. */
import { stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";

/** The path itself, or the closest folder above it that is there. */
export async function nearestExisting(path: string): Promise<string> {
  for (let here = resolve(path); ; here = dirname(here)) {
    if (here === dirname(here) || (await stat(here).catch(() => undefined)) !== undefined) return here;
  }
}
