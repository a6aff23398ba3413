/** Locates paths that may not exist yet. */
import { stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";

/** Returns the path, or its closest existing parent directory. */
export async function nearestExisting(path: string): Promise<string> {
  for (let here = resolve(path); ; here = dirname(here)) {
    if (here === dirname(here) || (await stat(here).catch(() => undefined)) !== undefined) return here;
  }
}
