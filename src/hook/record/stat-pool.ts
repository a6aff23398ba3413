/**
 * Threads that look at files for the index of a large workspace, because the system calls are nearly all of its work. A
 * helper only compares metadata. What differs, the index looks at itself. Without an answer it looks at everything.
 */
import { availableParallelism } from "node:os";
import type { Worker } from "node:worker_threads";
import { entryModule } from "../../child-process/package-files.ts";
import { startWorker } from "../../child-process/thread-pool.ts";
import { createStatShare, NO_FILE, STAT_CONTROL, STAT_FIELDS, type StatMessage } from "./stat-share.ts";

/** Of a smaller workspace, one thread is fast enough. */
const MIN_FILES = 4_000;
/** Threads together with the index's own. */
const MAX_THREADS = 4;
const PATIENCE_MS = 10_000;

/** A file as a helper sees it. */
export interface StatSubject {
  full: string | Buffer;
  size: number;
  mtime: number;
  ctime: number;
  ino: number;
  racy: boolean;
  /** Its position at its helper. Undefined for a file that the index reads itself. */
  slot?: number;
  helper?: number;
}

export class StatPool<T extends StatSubject> {
  private helpers: StatThread<T>[] = [];
  private fresh: T[] = [];
  private round = 0;
  private isStarted = false;
  private readonly least: number;
  private readonly threads: number;

  constructor({ least = MIN_FILES, threads = Math.min(MAX_THREADS, availableParallelism()) } = {}) {
    this.least = least;
    this.threads = threads;
  }

  add(file: T): void {
    if (typeof file.full === "string") this.fresh.push(file);
  }

  update(file: T): void {
    if (file.slot !== undefined) this.helpers[file.helper!]?.write(file);
  }

  remove(file: T): void {
    if (file.slot !== undefined) this.helpers[file.helper!]?.free(file);
  }

  /** Begins a look at all shared files. False if not every helper takes part. */
  begin(): boolean {
    if (this.helpers.length === 0 || !this.helpers.every((helper) => helper.isReady())) return false;
    this.round++;
    for (const helper of this.helpers) helper.begin(this.round);
    return true;
  }

  /** The shared files that differ. Waits for the helpers. */
  differing(): T[] {
    const found = this.helpers.map((helper) => helper.end(this.round));
    const all = found.flatMap((files, at) => files ?? this.helpers[at]!.all());
    if (found.includes(null)) this.stop();
    return all;
  }

  /** Gives the helpers their part of the files that came since. `size`: files of the index. */
  share(size: number): void {
    if (!this.isStarted) {
      if (size < this.least || this.threads < 2) return;
      this.isStarted = true;
      const room = Math.ceil((size * 2) / this.threads) + this.least;
      this.helpers = Array.from({ length: this.threads - 1 }, () => new StatThread<T>(room));
    }
    const { fresh, helpers, threads } = this;
    this.fresh = [];
    fresh.forEach((file, at) => {
      const helper = at % threads;
      if (file.slot === undefined && helper < helpers.length) helpers[helper]!.take(file, helper);
    });
    for (const helper of helpers) helper.send();
  }

  /** Ends the threads. From then on, the index reads all metadata itself. */
  stop(): void {
    for (const helper of this.helpers) helper.stop();
    this.helpers = [];
  }
}

class StatThread<T extends StatSubject> {
  private readonly worker: Worker;
  private readonly control: Int32Array;
  private readonly metadata: Float64Array;
  private readonly found: Int32Array;
  private readonly files: (T | undefined)[] = [];
  private readonly empty: number[] = [];
  private readonly room: number;
  private unsent: { slot: number; full: string }[] = [];
  private hasEnded = false;

  constructor(room: number) {
    const share = createStatShare(room);
    this.room = room;
    this.control = new Int32Array(share.control);
    this.metadata = new Float64Array(share.metadata);
    this.found = new Int32Array(share.differing);
    this.worker = startWorker(entryModule("hook/record/stat-thread"), { workerData: share });
    this.worker.on("error", () => {});
    this.worker.on("exit", () => {
      this.hasEnded = true;
    });
    this.worker.unref();
  }

  isReady(): boolean {
    return !this.hasEnded && Atomics.load(this.control, STAT_CONTROL.ready) === 1;
  }

  take(file: T, helper: number): void {
    const slot = this.empty.pop() ?? (this.files.length < this.room ? this.files.length : undefined);
    if (slot === undefined) return;
    this.files[slot] = file;
    file.slot = slot;
    file.helper = helper;
    this.unsent.push({ slot, full: file.full as string });
    this.write(file);
  }

  write({ slot, racy, mtime, ctime, size, ino }: T): void {
    // A racy file never equals, so the index reads it again.
    this.metadata.set([racy ? Number.NaN : mtime, ctime, size, ino], slot! * STAT_FIELDS);
  }

  free(file: T): void {
    const slot = file.slot!;
    this.metadata[slot * STAT_FIELDS + 2] = NO_FILE;
    this.files[slot] = undefined;
    this.empty.push(slot);
    delete file.slot;
  }

  send(): void {
    if (this.unsent.length === 0) return;
    this.worker.postMessage({ add: this.unsent } satisfies StatMessage);
    this.unsent = [];
  }

  begin(round: number): void {
    this.worker.postMessage({ look: this.files.length, round } satisfies StatMessage);
  }

  /** Null without an answer. */
  end(round: number): T[] | null {
    const until = performance.now() + PATIENCE_MS;
    for (;;) {
      const done = Atomics.load(this.control, STAT_CONTROL.done);
      if (done === round) break;
      const left = until - performance.now();
      if (left <= 0) return null;
      Atomics.wait(this.control, STAT_CONTROL.done, done, left);
    }
    const count = Atomics.load(this.control, STAT_CONTROL.found);
    return [...this.found.subarray(0, count)].flatMap((slot) => this.files[slot] ?? []);
  }

  all(): T[] {
    return this.files.filter((file) => file !== undefined);
  }

  stop(): void {
    for (const file of this.all()) delete file.slot;
    void this.worker.terminate();
  }
}
