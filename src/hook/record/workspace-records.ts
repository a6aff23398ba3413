/**
 * The part of the resident process that records workspaces. Each workspace has a thread. This part knows which calls are
 * under way, because changes during two calls cannot be attributed to one of them.
 */
import { randomUUID } from "node:crypto";
import { realpathSync } from "node:fs";
import { homedir } from "node:os";
import { entryModule } from "../../child-process/package-files.ts";
import { ThreadPool } from "../../child-process/thread-pool.ts";
import { withTimeout } from "../../kernel/timeout.ts";
import { workTreeTop } from "../workspace/safe-git.ts";
import { recordFolder } from "./content-store.ts";
import { type CallWrites, type CommandWrites, type OtherWrites, OverlappingCall } from "./overlaps.ts";
import { SNAPSHOT_DEFAULTS, type SnapshotSettings } from "./record-scope.ts";
import { isRecordableRoot, type RecordedEnd } from "./recorder.ts";
import type { RecorderJob } from "./recorder-jobs.ts";

const MAX_WORKSPACES = 4;
/** A thread holds the index of its workspace, so it stays as long as the process. */
const THREAD_IDLE_MS = 24 * 60 * 60 * 1_000;
const SAVE_MS = 2_000;
/** A call without an end for so long belongs to a client that is gone. */
const FORGOTTEN_MS = 12 * 60 * 60 * 1_000;

/** Directory of the hook's settings. */
interface RecordsPlace {
  folder: string;
}

interface OpenCall {
  overlap: OverlappingCall;
  began_ms: number;
  /** Null for an edit, whose own record holds its files. */
  threads: ThreadPool | null;
}

/** A window on the workspace, or why there is none. */
export type RecordBegin = { window: string } | { problem: string };

interface CommandToRecord {
  does: CommandWrites;
  /** How long the record may take. */
  wait_ms: number;
}

export class WorkspaceRecords {
  private readonly folder: string;
  private readonly roots = new Map<string, string>();
  private readonly threads = new Map<string, ThreadPool>();
  private readonly calls = new Map<string, OpenCall>();

  constructor({ folder }: RecordsPlace) {
    this.folder = folder;
  }

  /** Calls that have begun and not ended. */
  get open(): number {
    return this.calls.size;
  }

  /** The workspace of a session: that of its first event. Its index is brought up to date ahead of the first command. */
  meet(session: string, cwd: string, settings: SnapshotSettings): void {
    if (this.roots.has(session)) return;
    const root = rootOf(cwd);
    this.roots.set(session, root);
    if (isRecordableRoot(root, homedir()))
      this.threadsOf(root, settings)
        .ask({ do: "warm" } satisfies RecorderJob)
        .catch(() => {});
  }

  /** Marks an edit of these files. Returns its window. */
  enter(files: readonly string[]): string {
    return this.opened({ files }, null);
  }

  /** Ends an edit. Returns the paths that commands may have written during it, or null for an unknown window. */
  leave(window: string): OtherWrites | null {
    const open = this.calls.get(window);
    this.calls.delete(window);
    return open?.overlap.others ?? null;
  }

  /** Records the workspace before a command, within the time. */
  async begin(
    session: string,
    settings: SnapshotSettings,
    { does, wait_ms }: CommandToRecord,
  ): Promise<RecordBegin> {
    const root = this.roots.get(session);
    if (root === undefined || !isRecordableRoot(root, homedir()))
      return { problem: "the session's directory is not one project" };
    const threads = this.threadsOf(root, settings);
    const window = this.opened({ root, does }, threads);
    const begin = threads.ask({ do: "begin", window } satisfies RecorderJob);
    try {
      const late = Symbol("late");
      if ((await withTimeout(begin, Math.max(0, wait_ms), () => late)) !== late) return { window };
      this.drop(window);
      return { problem: "the record was not ready in time" };
    } catch (error) {
      this.drop(window);
      return { problem: error instanceof Error ? error.message : String(error) };
    }
  }

  /** Opens a window for a command that only reads, which waits for no record. Null without a recorded workspace. */
  watch(session: string, settings: SnapshotSettings): string | null {
    const root = this.roots.get(session);
    if (root === undefined || !isRecordableRoot(root, homedir())) return null;
    const threads = this.threadsOf(root, settings);
    const window = this.opened({ root, does: "read" }, threads);
    threads.ask({ do: "begin", window } satisfies RecorderJob).catch(() => this.drop(window));
    return window;
  }

  /** The difference since the window was opened. Null if it is not known. */
  async end(window: string, run: string, wait_ms: number): Promise<RecordedEnd | null> {
    const open = this.calls.get(window);
    this.calls.delete(window);
    if (open === undefined || open.threads === null || !("root" in open.overlap.writes)) return null;
    const { others, writes } = open.overlap;
    const job: RecorderJob = { do: "end", window, run, others, does: writes.does };
    return withTimeout(open.threads.ask<RecordedEnd | null>(job), wait_ms, () => null).catch(() => null);
  }

  /** Forgets a call that did not run. */
  withdraw(window: string): void {
    this.calls.get(window)?.overlap.withdraw();
    this.drop(window);
  }

  /** Forgets a call that may run without a record. */
  private drop(window: string): void {
    const open = this.calls.get(window);
    this.calls.delete(window);
    open?.threads?.ask({ do: "drop", window } satisfies RecorderJob).catch(() => {});
  }

  /** Removes the records of deleted runs. Every index is saved first, because its contents stay. */
  async sweep(deleted: readonly string[]): Promise<void> {
    const save = (threads: ThreadPool) => threads.ask({ do: "save" } satisfies RecorderJob);
    await Promise.all([...this.threads.values()].map(save));
    const threads = this.start("", SNAPSHOT_DEFAULTS);
    try {
      await threads.ask({ do: "sweep", deleted } satisfies RecorderJob);
    } finally {
      await threads.close();
    }
  }

  async close(): Promise<void> {
    await Promise.allSettled([...this.threads.values()].map((threads) => threads.close()));
  }

  private opened(writes: CallWrites, threads: ThreadPool | null): string {
    const window = randomUUID();
    const now = Date.now();
    for (const [id, other] of this.calls) if (other.began_ms < now - FORGOTTEN_MS) this.drop(id);
    const running = [...this.calls.values()].map(({ overlap }) => overlap);
    this.calls.set(window, { overlap: new OverlappingCall(running, writes), began_ms: now, threads });
    return window;
  }

  private threadsOf(root: string, settings: SnapshotSettings): ThreadPool {
    const key = JSON.stringify([root, settings]);
    const threads = this.threads.get(key) ?? this.start(root, settings);
    // The least recently used workspace comes first.
    this.threads.delete(key);
    this.threads.set(key, threads);
    for (const [other, idle] of this.threads) {
      if (this.threads.size <= MAX_WORKSPACES) break;
      if ([...this.calls.values()].some((call) => call.threads === idle)) continue;
      this.threads.delete(other);
      idle.close().catch(() => {});
    }
    return threads;
  }

  private start(root: string, snapshot: SnapshotSettings): ThreadPool {
    return new ThreadPool({
      name: "the workspace record",
      entry: entryModule("hook/record/thread"),
      setting: { root, service: this.folder, folder: recordFolder(this.folder), snapshot },
      most: 1,
      idle_ms: THREAD_IDLE_MS,
      patience_ms: SAVE_MS,
    });
  }
}

/** For the process's list of parts, which makes one of each. */
export const createWorkspaceRecords = (place: RecordsPlace): WorkspaceRecords => new WorkspaceRecords(place);

function rootOf(cwd: string): string {
  const top = workTreeTop(cwd) ?? cwd;
  try {
    return realpathSync(top);
  } catch {
    return top;
  }
}
