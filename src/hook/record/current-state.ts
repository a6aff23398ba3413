/** The current state of the paths in a record, without following a link. */
import { lstatSync } from "node:fs";
import type { ContentStore } from "./content-store.ts";
import { directoryState, fileState, linkState } from "./file-states.ts";
import { type MaybePathState, modeOf, stampOf } from "./path-state.ts";
import { readContent } from "./read-content.ts";
import type { CommandRecord, RecordedChange } from "./record-file.ts";
import { isGitIndex } from "./record-scope.ts";
import { SafeFolder, type SafePlace } from "./safe-folder.ts";

export const MAX_READ_BYTES = 1_073_741_824;

/** States now of every path in the record. `blocked`: a parent is a link or a file. */
export function currentStates(store: ContentStore, record: CommandRecord): (MaybePathState | "blocked")[] {
  let folder: SafeFolder;
  try {
    folder = new SafeFolder(record.root);
  } catch {
    return record.changes.map(() => "blocked");
  }
  return record.changes.map((change) => stateNow(folder, store, change));
}

export function stateNow(
  folder: SafeFolder,
  store: ContentStore,
  change: RecordedChange,
): MaybePathState | "blocked" {
  try {
    return folder.at(change.path, (place) => stateOfPlace(place, store, change));
  } catch {
    return "blocked";
  }
}

/** Reads a file only if its size is one of the recorded ones. */
export function stateOfPlace(
  { full }: SafePlace,
  store: ContentStore,
  change: RecordedChange,
): MaybePathState {
  const found = lstatSync(full, { throwIfNoEntry: false });
  if (found === undefined) return null;
  if (found.isDirectory()) return directoryState(found);
  if (found.isSymbolicLink()) return linkState(full);
  if (!found.isFile()) return { kind: "other", mode: modeOf(found) };
  const unread = { ...fileState(found, null), stamp: stampOf(found) };
  const isCandidate = [change.before, change.after].some(
    (state) => state?.kind === "file" && state.hash !== null && state.size === found.size,
  );
  if (!isCandidate && !isGitIndex(change.path)) return unread;
  const content = readContent(full, Math.max(found.size, MAX_READ_BYTES));
  if (typeof content === "string") return unread;
  return fileState(content.found, store.hash(change.path, content.bytes));
}

/** The state to keep of one path, with the bytes of a file. `hash` is null if the file is too large or cannot be read. */
export function stateToRecord(
  folder: SafeFolder,
  store: ContentStore,
  path: string,
  max_file: number,
): { state: MaybePathState; bytes: Buffer | null } {
  const none = { state: null, bytes: null };
  const seen = folder.at(path, ({ full }) => {
    const found = lstatSync(full, { throwIfNoEntry: false });
    if (found === undefined) return none;
    if (found.isDirectory()) return { state: directoryState(found), bytes: null };
    if (found.isSymbolicLink()) return { state: linkState(full), bytes: null };
    if (!found.isFile()) return { state: { kind: "other" as const, mode: modeOf(found) }, bytes: null };
    const content = readContent(full, max_file);
    if (typeof content === "string")
      return { state: { ...fileState(found, null), stamp: stampOf(found) }, bytes: null };
    return { state: fileState(content.found, store.hash(path, content.bytes)), bytes: content.bytes };
  });
  return seen ?? none;
}
