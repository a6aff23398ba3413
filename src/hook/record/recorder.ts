/**
 * Records one workspace: keeps its index, opens a window when a command begins and writes the difference when it ends.
 * Windows may overlap. Each one keeps only the earlier state of the paths that changed since it began.
 */
import { lstatSync, readFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { deflateRawSync, inflateRawSync } from "node:zlib";
import { outsideBuildOutput } from "./build-output.ts";
import { ContentStore } from "./content-store.ts";
import {
  type DifferenceSummary,
  differenceOf,
  type PathChange,
  renamesOf,
  summarizeDifference,
} from "./difference.ts";
import type { CommandWrites, OtherWrites } from "./overlaps.ts";
import type { MaybePathState } from "./path-state.ts";
import { fullPath, shownPath } from "./path-state.ts";
import {
  type CommandRecord,
  newRecordId,
  type RecordedChange,
  type StepState,
  stepState,
  writeRecord,
} from "./record-file.ts";
import { createExclusionTest, type SnapshotSettings } from "./record-scope.ts";
import { StatPool } from "./stat-pool.ts";
import { type IndexEntry, WorkspaceIndex } from "./workspace-index.ts";

/** How many names a step or a remark lists. */
const MAX_NAMED = 20;

export interface RecorderSetting {
  root: string;
  /** Directory of the service, which is never recorded. */
  service: string;
  /** Directory of the records. */
  folder: string;
  snapshot: SnapshotSettings;
  /** From how many files on, and with how many threads, helpers look at files. */
  helpers?: { least: number; threads: number };
}

export interface WindowEnd {
  window: string;
  run: string;
  /** Paths that calls at the same time may have written. They are not certainly the command's. */
  others: OtherWrites;
  /** What the command writes by its class. Everything else was written by others. */
  does: CommandWrites;
}

/** Changes of a command, for its step and for the session. */
export interface RecordedEnd {
  before: StepState;
  after: StepState;
  summary: DifferenceSummary;
  /** Changes that are not undone, by reason. */
  contested: string[];
  lost: string[];
}

interface Window {
  first: Map<string, MaybePathState>;
  lost: Set<string>;
}

export class WorkspaceRecorder {
  private readonly setting: RecorderSetting;
  private readonly store: ContentStore;
  private readonly index: WorkspaceIndex;
  private readonly windows = new Map<string, Window>();
  private isSaved = false;

  constructor(setting: RecorderSetting) {
    const { root, service, folder, snapshot } = setting;
    this.setting = setting;
    const store = new ContentStore(folder, true);
    this.store = store;
    const keep = (path: string, bytes: Buffer): string => {
      const hash = store.hash(path, bytes);
      store.put(hash, bytes);
      return hash;
    };
    this.index = new WorkspaceIndex(
      {
        root,
        max_file: snapshot.max_file,
        max_total: snapshot.max_total,
        isExcluded: createExclusionTest(snapshot.exclude),
        never: [service, folder],
        keep,
        helpers: new StatPool(setting.helpers),
      },
      {
        changing: (path, before) => {
          this.isSaved = false;
          for (const { first } of this.windows.values()) if (!first.has(path)) first.set(path, before);
        },
        lost: (path) => {
          for (const { lost } of this.windows.values()) lost.add(path);
        },
      },
      this.savedEntries(),
    );
  }

  /** Brings the index up to date before a command is known. */
  warm(): number {
    this.index.refresh(this.windows.size === 0);
    return this.index.size;
  }

  begin(window: string): number {
    const size = this.warm();
    this.windows.set(window, { first: new Map(), lost: new Set() });
    return size;
  }

  drop(window: string): void {
    this.windows.delete(window);
  }

  /**
   * Null if the window is unknown, for example because the process was started in the meantime, and for a read during
   * which nothing changed.
   */
  end({ window, run, others, does }: WindowEnd): RecordedEnd | null {
    const open = this.windows.get(window);
    if (open === undefined) return null;
    this.index.refresh(false);
    this.windows.delete(window);
    const all = differenceOf(open.first, (path) => this.index.stateOf(path));
    const changes = does === "read" ? this.unexplained(all, others) : all;
    if (does === "read" && changes.length === 0) return null;
    const foreign = does === "read" ? () => true : this.foreignTest(changes, others, does === "build");
    const peers = this.peersOf(changes);
    const kept = changes.map((change): RecordedChange => {
      const names = change.before?.kind === "file" ? peers.get(change.before.inode) : undefined;
      return {
        ...change,
        ...(foreign(change.path) ? { contested: true } : {}),
        ...(names === undefined ? {} : { peers: names.filter((path) => path !== change.path) }),
      };
    });
    const moved = renamesOf(changes);
    const missing = kept
      .filter(({ path, before }) => !moved.has(path) && !this.isRestorable(before))
      .map(({ path }) => path);
    const lost = [...new Set([...open.lost, ...missing])];
    const record: CommandRecord = {
      v: 1,
      id: newRecordId(),
      run,
      root: this.setting.root,
      host: hostname(),
      changes: kept,
      lost,
    };
    writeRecord(this.store, record);
    const left_out = [...this.index.left_out].sort().slice(0, MAX_NAMED).map(shownPath);
    return {
      before: stepState(this.store, record, "before", left_out),
      after: stepState(this.store, record, "after", left_out),
      summary: summarizeDifference(changes),
      contested: kept.filter(({ contested }) => contested === true).map(({ path }) => path),
      lost,
    };
  }

  /** Keeps the index for the next process, which then reads only what changed. */
  save(): void {
    if (this.isSaved) return;
    const entries = [...this.index.all()].map(({ path, state, size, mtime, ctime, ino, racy }) => {
      return { path, state, size, mtime, ctime, ino, racy };
    });
    const text = JSON.stringify({ root: this.setting.root, entries });
    this.store.write(this.savePath(), deflateRawSync(text, { level: 1 }));
    this.isSaved = true;
  }

  private savePath(): string {
    return join(this.store.folder, "roots", this.store.hmac(this.setting.root));
  }

  private savedEntries(): IndexEntry[] {
    try {
      const { entries } = readSavedIndex(this.savePath());
      return entries.filter(({ state }) => this.isRestorable(state));
    } catch {
      return [];
    }
  }

  /** Whether an undo can bring this state back. */
  private isRestorable(state: MaybePathState): boolean {
    if (state === null || state.kind === "link" || state.kind === "directory") return true;
    return state.kind === "file" && state.hash !== null && this.store.has(state.hash);
  }

  /** All names of each changed file that had several, by its inode. */
  private peersOf(changes: readonly PathChange[]): Map<string, string[]> {
    const names = new Map<string, string[]>();
    for (const { path, before } of changes)
      if (before?.kind === "file" && before.links > 1)
        names.set(before.inode, [...(names.get(before.inode) ?? []), path]);
    if (names.size === 0) return names;
    for (const { path, state } of this.index.all())
      if (state.kind === "file") names.get(state.inode)?.push(path);
    return names;
  }

  /** Whether another process may have written a path: for a call at the same time, or outside the output of a build. */
  private foreignTest(
    changes: readonly RecordedChange[],
    others: OtherWrites,
    build: boolean,
  ): (path: string) => boolean {
    if (others.all) return () => true;
    const paths = changes.map(({ path }) => path);
    const isOutside = build || others.output ? outsideBuildOutput(this.setting.root, paths) : () => false;
    return (path) =>
      others.files.has(`${fullPath(this.setting.root, path)}`) ||
      (build && isOutside(path)) ||
      (others.output && !isOutside(path));
  }

  /** Changes during a read, without those that the run's other calls have in their own records. */
  private unexplained(changes: readonly PathChange[], others: OtherWrites): PathChange[] {
    if (others.all) return [];
    const isOther = this.foreignTest(changes, others, false);
    return changes.filter(({ path }) => !isOther(path));
  }
}

export interface SavedIndex {
  root: string;
  entries: IndexEntry[];
}

export const readSavedIndex = (path: string): SavedIndex =>
  JSON.parse(inflateRawSync(readFileSync(path)).toString("utf8")) as SavedIndex;

/**
 * Whether the directory may be recorded. The home directory and its parents are too large, and are more than one
 * project.
 */
export function isRecordableRoot(root: string, home: string): boolean {
  if (root === "/" || root === home || home.startsWith(`${root}/`)) return false;
  return lstatSync(root, { throwIfNoEntry: false })?.isDirectory() === true;
}
