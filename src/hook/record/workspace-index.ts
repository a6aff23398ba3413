/**
 * The index of one workspace: every recorded path with its metadata and the hash of its content. A refresh reads only
 * what changed since, by size, times, inode and mode. What changed shortly before it was read is read again, because a
 * second change in the same tick of the clock leaves the same times (git's rule for racy timestamps).
 */
import { lstatSync, type Stats } from "node:fs";
import { directoryState, fileState, linkState, namesIn, statOf } from "./file-states.ts";
import { readGitIndex } from "./git-index.ts";
import {
  childPath,
  fullPath,
  type MaybePathState,
  modeOf,
  type PathState,
  parentPath,
  stampOf,
} from "./path-state.ts";
import { readContent } from "./read-content.ts";
import { isKeptOfGit, trackedExclusions } from "./record-scope.ts";
import type { StatPool, StatSubject } from "./stat-pool.ts";

const RACY_MS = 20;

export interface IndexOptions {
  root: string;
  max_file: number;
  max_total: number;
  isExcluded(path: string): boolean;
  /** Full paths that are never recorded, such as the service's directory. */
  never: readonly string[];
  /** Keeps a content and returns its hash. */
  keep(path: string, bytes: Buffer): string;
  /** Threads that look at a part of the files. */
  helpers?: StatPool<FileEntry>;
}

/** Is called for every path before its entry changes, and for paths that can no longer be read. */
export interface IndexListener {
  changing(path: string, before: MaybePathState): void;
  lost(path: string): void;
}

export interface IndexEntry {
  path: string;
  state: PathState;
  size: number;
  mtime: number;
  ctime: number;
  ino: number;
  racy: boolean;
}

export interface FileEntry extends IndexEntry, StatSubject {
  /** The directory that holds it. */
  node?: DirectoryEntry;
  /** True if it can no longer be read and the listener was called. */
  lost?: boolean;
}

interface DirectoryEntry extends FileEntry {
  files: Map<string, FileEntry>;
  directories: Map<string, DirectoryEntry>;
}

export class WorkspaceIndex {
  private readonly options: IndexOptions;
  private readonly listener: IndexListener;
  private root: DirectoryEntry | null = null;
  private readonly entries = new Map<string, FileEntry>();
  private readonly known: Map<string, IndexEntry>;
  private readonly never: ReadonlySet<string>;
  private device = 0;
  private total = 0;
  private tracked: ReadonlySet<string> = new Set();
  /** Directories that the scope leaves out. */
  readonly left_out = new Set<string>();

  /** `known`: entries of an earlier process. Their contents are not read again unless they changed. */
  constructor(options: IndexOptions, listener: IndexListener, known: readonly IndexEntry[] = []) {
    this.options = options;
    this.listener = listener;
    this.never = new Set(options.never);
    this.known = new Map(known.map((entry) => [entry.path, entry]));
  }

  get size(): number {
    return this.entries.size;
  }

  stateOf(path: string): MaybePathState {
    return this.entries.get(path)?.state ?? null;
  }

  all(): Iterable<IndexEntry> {
    return this.entries.values();
  }

  /** `rescope`: asks git's index again which excluded directories hold tracked files. */
  refresh(rescope: boolean): void {
    const { root } = this.options;
    const found = lstatSync(root, { throwIfNoEntry: false });
    if (!found?.isDirectory()) throw new Error(`${root}: is not a directory`);
    this.device = found.dev;
    if (rescope) this.rescope();
    if (this.root === null) {
      this.root = directoryEntry("", root, found);
      this.reconcile(this.root);
    }
    const { helpers } = this.options;
    const isHelped = helpers?.begin() === true;
    this.visit(this.root, found, isHelped);
    if (isHelped) for (const file of helpers!.differing()) this.checkFile(file.node!, file);
    this.known.clear();
    helpers?.share(this.entries.size);
  }

  private rescope(): void {
    const index = readContent(`${this.options.root}/.git/index`, this.options.max_total);
    const tracked = typeof index === "string" ? [] : (readGitIndex(index.bytes)?.tracked ?? []);
    const next = trackedExclusions(tracked, this.options.isExcluded);
    const same = next.size === this.tracked.size && [...next].every((path) => this.tracked.has(path));
    this.tracked = next;
    // Every directory is listed again, because the scope of its names may have changed.
    if (!same && this.root !== null) forgetNames(this.root);
  }

  /** `isHelped`: the files of the helpers are left to them. */
  private visit(node: DirectoryEntry, found: Stats, isHelped: boolean): void {
    const isSame =
      node.mtime === found.mtimeMs && node.ctime === found.ctimeMs && node.ino === found.ino && !node.racy;
    if (!isSame) {
      this.update(node, found, directoryState(found));
      node.racy = isRacy(found);
      this.reconcile(node);
    }
    for (const file of node.files.values())
      if (!isHelped || file.slot === undefined) this.checkFile(node, file);
    for (const inner of node.directories.values()) {
      const now = statOf(inner.full);
      if (now === null) this.lose(inner);
      else if (now?.isDirectory()) this.visit(inner, now, isHelped);
      else this.replace(node, inner.path, inner.full, now);
    }
  }

  private lose(entry: FileEntry): void {
    if (!entry.lost) this.listener.lost(entry.path);
    entry.lost = true;
  }

  private checkFile(node: DirectoryEntry, file: FileEntry): void {
    const found = statOf(file.full);
    if (found === null) {
      this.lose(file);
      return;
    }
    if (found === undefined || found.isDirectory()) {
      this.replace(node, file.path, file.full, found);
      return;
    }
    const isSame =
      !file.racy &&
      file.mtime === found.mtimeMs &&
      file.ctime === found.ctimeMs &&
      file.size === found.size &&
      file.ino === found.ino;
    if (!isSame) this.update(file, found, this.read(file, found));
  }

  private update(entry: FileEntry, found: Stats, state: PathState): void {
    this.listener.changing(entry.path, entry.path === "" ? null : entry.state);
    entry.state = state;
    entry.lost = false;
    setMetadata(entry, found);
    this.options.helpers?.update(entry);
  }

  /** Reads the names of a directory again. */
  private reconcile(node: DirectoryEntry): void {
    const names = namesIn(node.full);
    if (names === null) {
      if (node.files.size + node.directories.size === 0) this.listener.lost(node.path);
      return;
    }
    const there = new Set<string>();
    for (const { name, raw } of names) {
      const path = childPath(node.path, name, raw);
      there.add(path);
      if (!node.files.has(path) && !node.directories.has(path)) this.add(node, path);
    }
    for (const path of [...node.files.keys(), ...node.directories.keys()])
      if (!there.has(path) || !this.isInScope(path)) this.remove(node, path);
    for (const path of this.left_out)
      if (parentPath(path) === node.path && !there.has(path)) this.left_out.delete(path);
  }

  private isInScope(path: string): boolean {
    if (isKeptOfGit(path) === false) return false;
    return !this.isExcluded(path) || !this.isDirectoryNow(path);
  }

  private isExcluded(path: string): boolean {
    return isKeptOfGit(path) === undefined && this.options.isExcluded(path) && !this.tracked.has(path);
  }

  private isDirectoryNow(path: string): boolean {
    return statOf(fullPath(this.options.root, path))?.isDirectory() === true;
  }

  private add(node: DirectoryEntry, path: string): void {
    const full = fullPath(this.options.root, path);
    if (typeof full === "string" && this.never.has(full)) return;
    if (isKeptOfGit(path) === false) return;
    const found = statOf(full);
    if (found === null) this.listener.lost(path);
    if (found === null || found === undefined) return;
    if (!found.isDirectory()) {
      const file = { path, full, node, ...NO_METADATA } as FileEntry;
      file.state = this.read(file, found);
      setMetadata(file, found);
      this.listener.changing(path, null);
      node.files.set(path, file);
      this.entries.set(path, file);
      this.options.helpers?.add(file);
      return;
    }
    // Another file system is mounted there.
    const isForeign = found.dev !== this.device;
    if (isForeign || this.isExcluded(path)) {
      this.left_out.add(path);
      return;
    }
    this.left_out.delete(path);
    const inner = directoryEntry(path, full, found);
    this.listener.changing(path, null);
    node.directories.set(path, inner);
    this.entries.set(path, inner);
    this.reconcile(inner);
  }

  private remove(node: DirectoryEntry, path: string): void {
    const file = node.files.get(path);
    const inner = node.directories.get(path);
    if (inner !== undefined)
      for (const below of [...inner.files.keys(), ...inner.directories.keys()]) this.remove(inner, below);
    const entry = file ?? inner;
    if (entry === undefined) return;
    this.listener.changing(path, entry.state);
    this.count(entry.state, -1);
    this.options.helpers?.remove(entry);
    node.files.delete(path);
    node.directories.delete(path);
    this.entries.delete(path);
  }

  private replace(node: DirectoryEntry, path: string, full: string | Buffer, found?: Stats): void {
    this.remove(node, path);
    if (found !== undefined && full !== "") this.add(node, path);
  }

  private read(entry: FileEntry, found: Stats): PathState {
    this.count(entry.state, -1);
    if (found.isSymbolicLink()) return linkState(entry.full) ?? this.unrecorded(found);
    if (!found.isFile()) return { kind: "other", mode: modeOf(found) };
    const { max_file, max_total, keep } = this.options;
    if (found.size > max_file || this.total + found.size > max_total) return this.unrecorded(found);
    const known = this.known.get(entry.path);
    if (known !== undefined && isUnchanged(known, found)) {
      this.count(known.state, 1);
      return known.state;
    }
    const content = readContent(entry.full, max_file);
    if (typeof content === "string") return this.unrecorded(found);
    Object.assign(found, content.found);
    const state = fileState(found, keep(entry.path, content.bytes));
    this.count(state, 1);
    return state;
  }

  private unrecorded(found: Stats): PathState {
    return { ...fileState(found, null), stamp: stampOf(found) };
  }

  private count(state: PathState | undefined, by: 1 | -1): void {
    if (state?.kind === "file" && state.hash !== null) this.total += by * state.size;
  }
}

const NO_METADATA = { size: 0, mtime: 0, ctime: 0, ino: 0, racy: false };

function directoryEntry(path: string, full: string | Buffer, found: Stats): DirectoryEntry {
  const entry: DirectoryEntry = {
    path,
    full,
    state: directoryState(found),
    ...NO_METADATA,
    files: new Map(),
    directories: new Map(),
  };
  setMetadata(entry, found);
  return entry;
}

function setMetadata(entry: IndexEntry, found: Stats): void {
  entry.size = found.size;
  entry.mtime = found.mtimeMs;
  entry.ctime = found.ctimeMs;
  entry.ino = found.ino;
  entry.racy = isRacy(found) || isPending(entry.state);
}

const isRacy = ({ mtimeMs, ctimeMs }: Stats): boolean => Date.now() - Math.max(mtimeMs, ctimeMs) < RACY_MS;

/** A file whose content could not be read is tried again. */
const isPending = (state: PathState): boolean => state.kind === "file" && state.hash === null;

const isUnchanged = (entry: IndexEntry, found: Stats): boolean =>
  !entry.racy &&
  entry.state.kind === "file" &&
  entry.state.hash !== null &&
  entry.mtime === found.mtimeMs &&
  entry.ctime === found.ctimeMs &&
  entry.size === found.size &&
  entry.ino === found.ino;

function forgetNames(node: DirectoryEntry): void {
  node.mtime = -1;
  for (const inner of node.directories.values()) forgetNames(inner);
}
