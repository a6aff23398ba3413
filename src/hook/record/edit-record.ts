/**
 * The record of an edit: the state of the files that the call names, before and after it. It needs no index, so every
 * process can make it, and it holds files outside the workspace too. A file behind a link is recorded under both names.
 */
import { lstatSync } from "node:fs";
import { hostname } from "node:os";
import { basename, dirname, join, parse, relative, sep } from "node:path";
import { gitBlobId, hexHash } from "../workspace/hash.ts";
import type { OwnEdit } from "../workspace/own-edits.ts";
import { resolveLinks } from "../workspace/resolve-links.ts";
import { outsideBuildOutput } from "./build-output.ts";
import { ContentStore, recordFolder } from "./content-store.ts";
import { stateToRecord } from "./current-state.ts";
import { summarizeDifference } from "./difference.ts";
import { namesOfInode } from "./other-names.ts";
import type { OtherWrites } from "./overlaps.ts";
import { inodeNameOf, isSameState, type MaybePathState } from "./path-state.ts";
import {
  type CommandRecord,
  newRecordId,
  type RecordedChange,
  stepState,
  writeRecord,
} from "./record-file.ts";
import type { RecordedEnd } from "./recorder.ts";
import { SafeFolder } from "./safe-folder.ts";

interface EditedPlace {
  /** Relative to the root; no part of the path is a link. */
  path: string;
  /** The path as the call names it. */
  given: string;
  before: MaybePathState;
  /** Git's name of the content and its SHA-256. Null without a file. */
  blob: string | null;
  sha256: string | null;
}

/** The paths that an edit may change, with their states before it. */
export interface EditWindow {
  root: string;
  /** Directory to search for other names of a file. */
  workspace: string;
  places: EditedPlace[];
}

interface EditFiles {
  root: string;
  files: readonly string[];
  max_file: number;
}

/** `folder`: that of the hook's settings. Throws if a path is not a plain file, or cannot be read. */
export function openEdit(folder: string, { root, files, max_file }: EditFiles): EditWindow {
  const store = new ContentStore(recordFolder(folder), true);
  const named = files.flatMap((given) => placesOf(given).map((full) => ({ given, full })));
  const places = named.flatMap((one) => [one, ...otherNames(root, one)]);
  const top = places.every(({ full }) => full.startsWith(root + sep)) ? root : parse(places[0]!.full).root;
  const safe = new SafeFolder(top);
  const seen = new Set<string>();
  return {
    root: top,
    workspace: root,
    places: places.flatMap(({ given, full }) => {
      const path = pathBelow(top, full);
      if (seen.has(path)) return [];
      seen.add(path);
      const { state, bytes } = stateToRecord(safe, store, path, max_file);
      if (state?.kind === "other" || (state?.kind === "directory" && !given.endsWith("/")))
        throw new Error(`${given} is not a regular file`);
      if (bytes !== null && state?.kind === "file" && state.hash !== null) store.put(state.hash, bytes);
      return [{ path, given, before: state, ...namesOfContent(bytes) }];
    }),
  };
}

const pathBelow = (top: string, full: string): string =>
  full
    .slice(top.endsWith(sep) ? top.length : top.length + 1)
    .split(sep)
    .join("/");

/** The files in full. */
export const editedFiles = ({ root, places }: EditWindow): string[] =>
  places.map(({ path }) => join(root, path));

/** An edit's difference, and the same in the form that git's contents are compared with. */
export interface EditEnd extends RecordedEnd {
  own: OwnEdit[];
}

interface EditToClose {
  run: string;
  max_file: number;
  /** Paths that commands at the same time may have written. */
  others: Pick<OtherWrites, "all" | "output">;
  /** Whether the edit itself left this content. */
  isOwn(bytes: Buffer | null): boolean;
}

export function closeEdit(
  folder: string,
  window: EditWindow,
  { run, max_file, others, isOwn }: EditToClose,
): EditEnd {
  const { root, places } = window;
  const store = new ContentStore(recordFolder(folder), true);
  const safe = new SafeFolder(root);
  const changes: RecordedChange[] = [];
  const own: OwnEdit[] = [];
  const isShared = sharedTest(window, others);
  for (const { path, given, before, blob, sha256 } of places) {
    const { state: after, bytes } = stateToRecord(safe, store, path, max_file);
    own.push({ path: given, before: blob, was: sha256, after: bytes === null ? null : hexHash(bytes) });
    const peers = peersOf(places, path, before);
    const contested = isShared(path) && after?.kind !== "directory" && !isOwn(bytes);
    if (!isSameState(before, after))
      changes.push({ path, before, after, ...(contested ? { contested } : {}), ...peers });
  }
  changes.sort((a, b) => (a.path < b.path ? -1 : 1));
  const unread = changes.filter(({ before }) => before?.kind === "file" && before.hash === null);
  const lost = [...unread.map(({ path }) => path), ...namesGained(window, changes)];
  const record: CommandRecord = {
    ...{ v: 1, id: newRecordId(), run, root, host: hostname(), changes, lost },
    edit: true,
  };
  writeRecord(store, record);
  return {
    before: stepState(store, record, "before", []),
    after: stepState(store, record, "after", []),
    summary: summarizeDifference(changes),
    contested: changes.filter(({ contested }) => contested === true).map(({ path }) => path),
    lost,
    own,
  };
}

/** Whether a command at the same time may have written a path: any command its workspace, and a build its output. */
function sharedTest(
  window: EditWindow,
  { all, output }: Pick<OtherWrites, "all" | "output">,
): (path: string) => boolean {
  if (all || !output) return () => all;
  const { root, workspace } = window;
  const inWorkspace = (path: string) => relative(workspace, join(root, path)).split(sep).join("/");
  const isOutside = outsideBuildOutput(
    workspace,
    window.places.map(({ path }) => inWorkspace(path)),
  );
  return (path) => !isOutside(inWorkspace(path));
}

/** The path itself, and for a link the path behind it. */
function placesOf(given: string): string[] {
  const path = given.replace(/(?<![\\/])[\\/]+$/, "");
  const direct = join(resolveLinks(dirname(path)), basename(path));
  return [...new Set([direct, resolveLinks(path)])];
}

interface NamedPlace {
  given: string;
  full: string;
}

/** An edit of a file with several names changes the content under each of them. */
function otherNames(root: string, { given, full }: NamedPlace): NamedPlace[] {
  const found = lstatSync(full, { throwIfNoEntry: false });
  if (!found?.isFile() || found.nlink < 2 || given.endsWith("/")) return [];
  return namesOfInode(root, inodeNameOf(found), found.nlink).map((name) => ({ given: name, full: name }));
}

/** Other names of the file before the edit. The restore can link it to them again. */
function peersOf(places: readonly EditedPlace[], path: string, before: MaybePathState): { peers?: string[] } {
  if (before?.kind !== "file" || before.links < 2) return {};
  const same = places.filter((one) => one.before?.kind === "file" && one.before.inode === before.inode);
  return { peers: same.map((one) => one.path).filter((one) => one !== path) };
}

/** Names that an edited file got while the edit ran. Their earlier state is not recorded. */
function namesGained({ root, workspace, places }: EditWindow, changes: readonly RecordedChange[]): string[] {
  const known = new Set(places.map(({ path }) => path));
  const gained = changes.flatMap(({ before, after }) => {
    if (after?.kind !== "file" || after.links < 2) return [];
    if (before?.kind === "file" && before.inode === after.inode && after.links <= before.links) return [];
    return namesOfInode(workspace, after.inode, after.links).map((full) => pathBelow(root, full));
  });
  return [...new Set(gained)].filter((path) => !known.has(path));
}

function namesOfContent(bytes: Buffer | null): { blob: string | null; sha256: string | null } {
  return bytes === null ? { blob: null, sha256: null } : { blob: gitBlobId(bytes), sha256: hexHash(bytes) };
}
