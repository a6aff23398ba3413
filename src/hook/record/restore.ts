/**
 * Restores what a record says a call changed, path by path. A path is restored only while it is as the call left
 * it. Everything else stays, and is named with the reason.
 */
import {
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  renameSync,
  statSync,
  symlinkSync,
  unlinkSync,
} from "node:fs";
import type { ContentStore } from "./content-store.ts";
import { MAX_READ_BYTES, stateNow, stateOfPlace } from "./current-state.ts";
import { renamesOf } from "./difference.ts";
import {
  inodeNameOf,
  isSameState,
  type MaybePathState,
  modeOf,
  type PathState,
  parentPath,
  type RecordedFile,
} from "./path-state.ts";
import { readContent } from "./read-content.ts";
import { type CommandRecord, placeName, type RecordedChange } from "./record-file.ts";
import { isGitIndex } from "./record-scope.ts";
import {
  OWNER_ALL,
  removeFolder,
  replaceWith,
  setFolderMode,
  writeFresh,
  writeInPlace,
} from "./restore-steps.ts";
import { PathBlocked, SafeFolder, type SafePlace } from "./safe-folder.ts";

/** A path that was not restored, and why. */
export interface LeftPath {
  path: string;
  error: string;
}

const CONTESTED = "conflict: changed while another was writing";
const CHANGED = "conflict: changed since";
const LINKED = "conflict: a link is in its place";
const SKIPPED = "left out by --skip";
const NOT_RECORDED = "not recorded";

/** `isSkipped`: the paths to leave out. `overwrite`: a person decided to restore what changed since, too. */
interface RestoreChoice {
  isSkipped: (path: string) => boolean;
  overwrite: boolean;
}

/** Returns everything that was not restored. */
export function restoreRecord(store: ContentStore, record: CommandRecord, choice: RestoreChoice): LeftPath[] {
  const lost = record.lost.map((path) => ({ path: placeName(record, path), error: NOT_RECORDED }));
  let folder: SafeFolder;
  try {
    folder = new SafeFolder(record.root);
  } catch (error) {
    const why = error instanceof PathBlocked ? LINKED : "the workspace is not there";
    return [...record.changes.map(({ path }) => ({ path: placeName(record, path), error: why })), ...lost];
  }
  const restorer = new Restorer(folder, store, record);
  return [...restorer.run(choice), ...lost];
}

class Restorer {
  private readonly folder: SafeFolder;
  private readonly store: ContentStore;
  private readonly record: CommandRecord;
  private readonly changes: ReadonlyMap<string, RecordedChange>;
  private readonly left = new Map<string, string>();
  /** Files with several names that got a new inode, by their recorded one. */
  private readonly renewed = new Map<string, string>();
  /** The states at the first look. */
  private readonly met = new Map<string, MaybePathState>();
  /** Created paths that are renamed back to a deleted one, because that content was not recorded. */
  private readonly returns = new Map<string, RecordedChange>();

  constructor(folder: SafeFolder, store: ContentStore, record: CommandRecord) {
    this.folder = folder;
    this.store = store;
    this.record = record;
    this.changes = new Map(record.changes.map((change) => [change.path, change]));
    for (const [from, to] of renamesOf(record.changes)) {
      const before = this.changes.get(from)?.before;
      if (before?.kind === "file" && before.hash === null) this.returns.set(from, this.changes.get(to)!);
    }
  }

  run({ isSkipped, overwrite }: RestoreChoice): LeftPath[] {
    const lost = new Set(this.record.lost);
    const todo = this.record.changes.filter((change) => {
      if (lost.has(change.path)) return false;
      const error = isSkipped(change.path) ? SKIPPED : this.objection(change, overwrite);
      if (error !== null && error !== "") this.left.set(change.path, error);
      return error === null;
    });
    for (const change of todo) if (wasFolder(change)) this.attempt(change, () => this.open(change));
    const returning = new Set(this.returns.values());
    for (const change of byDepth(todo, "inner first"))
      if (change.after !== null && change.before?.kind !== change.after.kind && !returning.has(change))
        this.attempt(change, () => this.remove(change));
    for (const change of byDepth(todo, "outer first"))
      if (change.before?.kind === "directory" && change.after?.kind !== "directory")
        this.attempt(change, () => this.makeFolder(change.path));
    for (const change of this.filesOf(todo)) this.attempt(change, () => this.bringBack(change));
    for (const change of byDepth(todo, "inner first"))
      if (change.before?.kind === "directory") this.attempt(change, () => this.settleFolder(change));
    for (const change of todo) if (!this.left.has(change.path)) this.check(change);
    return [...this.left].map(([path, error]) => ({ path: placeName(this.record, path), error }));
  }

  /** Null: it can be restored. "": nothing is to be done. Otherwise the reason to leave it. */
  private objection(change: RecordedChange, overwrite: boolean): string | null {
    const seen = stateNow(this.folder, this.store, change);
    const now = seen === "blocked" && change.after === null && this.isReplaced(change.path) ? null : seen;
    if (now === "blocked") return LINKED;
    this.met.set(change.path, now);
    const asAfter = isSameContent(change.after, now);
    if (!asAfter && isSameContent(change.before, now)) return "";
    if (overwrite && now?.kind === change.after?.kind) return null;
    if (change.contested === true) return CONTESTED;
    if (asAfter) return null;
    return now?.kind === "link" && change.after?.kind !== "link" ? LINKED : CHANGED;
  }

  /** Whether the command put a file or a link where a directory above the path was, and it is still there. */
  private isReplaced(path: string): boolean {
    for (let above = parentPath(path); above !== ""; above = parentPath(above)) {
      const change = this.changes.get(above);
      if (change?.before?.kind !== "directory" || change.after === null) continue;
      const now = stateNow(this.folder, this.store, change);
      return change.after.kind !== "directory" && now !== "blocked" && isSameContent(change.after, now);
    }
    return false;
  }

  private attempt({ path }: RecordedChange, work: () => void): void {
    if (this.left.has(path)) return;
    try {
      work();
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (error instanceof PathBlocked) this.left.set(path, LINKED);
      else this.left.set(path, code === undefined ? (error as Error).message : `the system refused: ${code}`);
    }
  }

  /** Lets the owner into a directory whose mode the command changed. */
  private open({ path, after }: RecordedChange): void {
    if (after?.kind !== "directory" || (after.mode & OWNER_ALL) === OWNER_ALL) return;
    this.at(path, ({ full }) => setFolderMode(full, after.mode | OWNER_ALL));
  }

  private remove(change: RecordedChange): void {
    this.at(change.path, (place) => {
      if (change.after?.kind === "directory") return removeFolder(place);
      this.assertUnchanged(change, place);
      this.writing(place, () => unlinkSync(place.full));
    });
  }

  private makeFolder(path: string): void {
    this.at(path, (place) => this.writing(place, () => mkdirSync(place.full, { mode: OWNER_ALL })));
  }

  private settleFolder({ path, before }: RecordedChange): void {
    if (before?.kind !== "directory") return;
    this.at(path, ({ full }) => {
      const found = lstatSync(full);
      if (!found.isDirectory()) throw new PathBlocked();
      setFolderMode(full, before.mode, before);
    });
  }

  /** Files that still have their inode come first, because the others may be linked to them again. */
  private filesOf(todo: readonly RecordedChange[]): RecordedChange[] {
    const files = todo.filter(({ before }) => before?.kind === "file" || before?.kind === "link");
    const stays = ({ before, after }: RecordedChange) =>
      before?.kind === "file" && after?.kind === "file" && before.inode === after.inode;
    return [...files.filter(stays), ...files.filter((change) => !stays(change))];
  }

  private bringBack(change: RecordedChange): void {
    const { before } = change;
    if (before?.kind === "link") this.relink(change, before);
    if (before?.kind !== "file") return;
    if (before.hash === null) this.renameBack(change);
    else this.rewrite(change, before, before.hash);
  }

  private rewrite(change: RecordedChange, before: RecordedFile, hash: string): void {
    const { path } = change;
    const bytes = this.store.get(path, hash);
    if (bytes === null) throw new Error("its recorded content is missing or damaged");
    this.at(path, (place) => {
      // Another name of the file was written before.
      if (isSameState(before, stateOfPlace(place, this.store, change))) return;
      const now = lstatSync(place.full, { throwIfNoEntry: false });
      this.assertUnchanged(change, place);
      const keepsInode = now?.isFile() && inodeNameOf(now) === before.inode;
      if (keepsInode && before.links > 1) return writeInPlace(place.full, bytes, before);
      if (before.links > 1 && this.linkAgain(change, place)) return;
      this.writing(place, () =>
        replaceWith(place, now, (fresh) => writeFresh(fresh, bytes, before, isGitIndex(path))),
      );
      if (before.links < 2) return;
      this.renewed.set(before.inode, path);
      // Names in this record are linked to the new file when their turn comes.
      const names = (change.peers ?? []).filter((peer) => this.changes.has(peer));
      if (names.length < before.links - 1)
        throw new Error("it lost the hard link to its other name; link the two again");
    });
  }

  private relink(change: RecordedChange, before: Extract<PathState, { kind: "link" }>): void {
    const target = before.raw ? Buffer.from(before.target, "latin1") : before.target;
    this.at(change.path, (place) => {
      this.assertUnchanged(change, place);
      const now = lstatSync(place.full, { throwIfNoEntry: false });
      this.writing(place, () => replaceWith(place, now, (fresh) => symlinkSync(target, fresh)));
    });
  }

  /** A content that was not recorded is still there under its new name. */
  private renameBack({ path }: RecordedChange): void {
    const to = this.returns.get(path);
    if (to === undefined) throw new Error(NOT_RECORDED);
    this.at(path, (place) => {
      if (lstatSync(place.full, { throwIfNoEntry: false }) !== undefined) throw new Error(CHANGED);
      this.at(to.path, (from) => {
        this.assertUnchanged(to, from);
        this.writing(from, () => this.writing(place, () => renameSync(from.full, place.full)));
      });
    });
  }

  /** Whether another name still has the file's inode and could be linked to this one. */
  private linkAgain({ before, peers = [] }: RecordedChange, place: SafePlace): boolean {
    if (before?.kind !== "file") return false;
    const renewed = this.renewed.get(before.inode);
    return [...peers, ...(renewed === undefined ? [] : [renewed])].some((peer) =>
      this.folder.at(peer, (other) => {
        const found = lstatSync(other.full, { throwIfNoEntry: false });
        if (!found?.isFile() || (peer !== renewed && inodeNameOf(found) !== before.inode)) return false;
        const content = readContent(other.full, MAX_READ_BYTES);
        if (typeof content === "string" || this.store.hash(peer, content.bytes) !== before.hash) return false;
        this.writing(place, () => replaceWith(place, undefined, (fresh) => linkSync(other.full, fresh)));
        return true;
      }),
    );
  }

  /** The last check before a step that cannot be reverted. */
  private assertUnchanged(change: RecordedChange, place: SafePlace): void {
    const now = stateOfPlace(place, this.store, change);
    if (isSameState(this.met.get(change.path) ?? null, now)) return;
    // An earlier step of this restore may have removed it.
    if (now === null && change.before?.kind !== change.after?.kind) return;
    throw new Error(now?.kind === "link" ? LINKED : CHANGED);
  }

  private check(change: RecordedChange): void {
    const now = stateNow(this.folder, this.store, change);
    if (now !== "blocked" && isSameContent(change.before, now)) return;
    // A file that was renamed back has another time of change than before.
    if (!this.returns.has(change.path) || now === null)
      this.left.set(change.path, "it differs from the recorded state; another process may be writing it");
  }

  private at(path: string, use: (place: SafePlace) => void): void {
    const done = this.folder.at(path, (place) => {
      use(place);
      return true;
    });
    if (done === null) throw new Error("its directory is not there");
  }

  /** Does the work although its directory may not be writable, and leaves the directory as it was. */
  private writing({ folder }: SafePlace, work: () => void): void {
    try {
      work();
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EACCES") throw error;
    }
    const mode = modeOf(statSync(folder));
    chmodSync(folder, mode | OWNER_ALL);
    try {
      work();
    } finally {
      chmodSync(folder, mode);
    }
  }
}

const wasFolder = ({ after }: RecordedChange): boolean => after?.kind === "directory";

function byDepth(changes: readonly RecordedChange[], order: "inner first" | "outer first"): RecordedChange[] {
  const sorted = [...changes].sort((a, b) => a.path.split("/").length - b.path.split("/").length);
  return order === "inner first" ? sorted.reverse() : sorted;
}

/** Like `isSameState`, without the file's other names. */
function isSameContent(before: MaybePathState, now: MaybePathState): boolean {
  if (before?.kind !== "file" || now?.kind !== "file") return isSameState(before, now);
  return isSameState({ ...before, links: 1 }, { ...now, links: 1 });
}
