/** Removes the records of deleted runs, and the contents without a record or workspace that needs them. */
import { lstatSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { ContentStore } from "./content-store.ts";
import { contentsOf, readRecord, recordedRuns, removeRecords } from "./record-file.ts";
import { readSavedIndex } from "./recorder.ts";

/** The index of a workspace without use for so long is dropped. Its next record starts again. */
const UNUSED_MS = 30 * 24 * 60 * 60 * 1_000;

/** Returns the bytes of contents that were freed. */
export function sweepRecords(store: ContentStore, deleted: readonly string[], now = Date.now()): number {
  for (const run of deleted) removeRecords(store, run);
  const kept = new Set<string>();
  for (const { paths } of recordedRuns(store))
    for (const path of paths) for (const hash of contentsOf(readRecord(path))) kept.add(hash);
  for (const name of readdirSync(join(store.folder, "roots"))) {
    const path = join(store.folder, "roots", name);
    if (!isInUse(path, now)) rmSync(path, { force: true });
    else
      for (const { state } of readSavedIndex(path).entries)
        if (state.kind === "file" && state.hash !== null) kept.add(state.hash);
  }
  return store.sweep((hash) => kept.has(hash), now);
}

function isInUse(path: string, now: number): boolean {
  try {
    if (lstatSync(path).mtimeMs < now - UNUSED_MS) return false;
    return lstatSync(readSavedIndex(path).root, { throwIfNoEntry: false })?.isDirectory() === true;
  } catch {
    return false;
  }
}
