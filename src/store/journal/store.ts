/**
 * A store that writes units to a log and moves them into a checkpoint database in the background. The files and sqlite
 * stores use it with their own logs.
 */
import { join } from "node:path";
import type {
  CountQuery,
  DocRow,
  LedgerState,
  ListQuery,
  RecordQuery,
  StateStore,
  StoreBackup,
  UnitOfWork,
} from "../../govern/port/store.ts";
import type { TableDocs, TableName } from "../../govern/port/tables.ts";
import { SvcError } from "../../kernel/errors.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { withTimeout } from "../../kernel/timeout.ts";
import type { PendingUnit } from "../batch.ts";
import { type ChangeSignal, changeSignal } from "../change-signal.ts";
import { GroupCommit, type WrittenBatch } from "../group-commit.ts";
import { WRITE_TEST_KEY, WriteHealth } from "../write-health.ts";
import { takeBackup } from "./backup.ts";
import { JOURNAL_BOUNDS, type JournalBounds, JournalCheckpointer } from "./checkpoint/checkpointer.ts";
import type { WorkerHandle } from "./checkpoint/worker-handle.ts";
import { LogCommitter } from "./committer.ts";
import { type DiskOps, errorCode, nodeDisk, writeAll } from "./disk.ts";
import { HaltReserve } from "./halt-reserve.ts";
import { countDocuments, listDocuments } from "./listing.ts";
import type { StoreLog } from "./log.ts";
import { ReadPacer } from "./read-pacer.ts";
import { LedgerSearch, type LineRange } from "./search.ts";
import { StoreView } from "./store-view.ts";

/** Options with which a test can replace real dependencies. */
export interface LoggedStoreOptions {
  disk: DiskOps;
  helper: WorkerHandle;
  bounds: JournalBounds;
}

/** Cost of a search in reads, and the number of documents that cost as much to compare as one read. */
const SEARCH_UNITS = 5;
const DOCUMENTS_PER_UNIT = 50;

interface LoggedStoreParts extends LoggedStoreOptions {
  folder: string;
  checkpoint_path: string;
  warn(message: string, fields?: Record<string, unknown>): void;
  /** `locate` tells the log the byte ranges of lines, which only the store has. */
  makeLog(locate: (from: number, to: number) => LineRange): StoreLog;
}

/** Fills in the real dependencies. */
export function withDefaults(
  helper: () => WorkerHandle,
  options: Partial<LoggedStoreOptions>,
): LoggedStoreOptions {
  return {
    disk: options.disk ?? nodeDisk,
    helper: options.helper ?? helper(),
    bounds: options.bounds ?? JOURNAL_BOUNDS,
  };
}

/** How often to check for changes by other processes while a caller waits for one. */
const POLL_MS = 100;
/** A journal with this many changes is applied to the checkpoint on close, so that the next start is fast. */
const CLOSE_CHANGES = 2_000;

export class LoggedStore implements StateStore {
  readonly kind: StoreLog["kind"];
  private readonly parts: LoggedStoreParts;
  private readonly log: StoreLog;
  private readonly storeView = new StoreView();
  private readonly reserve: HaltReserve;
  private readonly committer: LogCommitter;
  private readonly checkpointer: JournalCheckpointer;
  private readonly search: LedgerSearch;
  private readonly commits: GroupCommit;
  private readonly signal: ChangeSignal = changeSignal();
  /** The version of the store view at the last notification of waiters. */
  private announced = 0;
  private poll: NodeJS.Timeout | undefined;
  private probing: Promise<void> | undefined;
  private readonly health = new WriteHealth();
  private readonly pacer = new ReadPacer();
  private closed = false;
  private closing: Promise<void> | undefined;

  private constructor(parts: LoggedStoreParts) {
    const { disk, folder, warn, helper, checkpoint_path, bounds } = parts;
    const { storeView } = this;
    this.parts = parts;
    this.log = parts.makeLog((from, to) => this.search.locate(from, to));
    this.kind = this.log.kind;
    this.reserve = new HaltReserve(disk, folder);
    const checkpoint = () => this.committer.checkpoint;
    this.search = new LedgerSearch(storeView, checkpoint, this.log);
    this.committer = new LogCommitter({
      log: this.log,
      storeView,
      reserve: this.reserve,
      checkpoint_path,
      warn,
    });
    const makeDurable = async () => this.committer.whenDurable();
    const whenSynced = () => this.committer.whenSynced();
    this.checkpointer = new JournalCheckpointer({
      log: this.log,
      storeView,
      helper,
      checkpoint,
      makeDurable,
      whenSynced,
      bounds,
      warn,
    });
    this.commits = new GroupCommit((batch, until, leave) => this.commit(batch, until, leave), {
      gathers: true,
    });
  }

  static async open(parts: LoggedStoreParts): Promise<LoggedStore> {
    const store = new LoggedStore(parts);
    try {
      await store.committer.open();
    } catch (error) {
      await store.letGo();
      throw error instanceof SvcError ? error : unavailable(error);
    }
    // A full disk must not prevent the start, because existing records are still readable.
    await store.reserve.fill().catch(() => {});
    return store;
  }

  transact<T>(unit: UnitOfWork<T>): Promise<T> {
    return this.commits.submit(unit);
  }

  get<N extends TableName>(table: N, key: string): Promise<TableDocs[N] | undefined> {
    return this.look("documents", () => this.storeView.get(table, key));
  }

  list<N extends TableName>(table: N, query: ListQuery): Promise<DocRow<N>[]> {
    const read = () => listDocuments(table, query, this.storeView.overlays, this.committer.checkpoint);
    return this.look("documents", read, this.searchUnits(table)).then(this.paced);
  }

  count(table: TableName, query: CountQuery = {}): Promise<number> {
    const read = () => countDocuments(table, query, this.storeView.overlays, this.committer.checkpoint);
    return this.look("documents", read, this.searchUnits(table));
  }

  /** A search compares every document of the table's overlays, also those that it does not return. */
  private searchUnits(table: TableName): number {
    return SEARCH_UNITS + this.storeView.overlays.sizeOf(table) / DOCUMENTS_PER_UNIT;
  }

  records(query: RecordQuery): Promise<string[]> {
    return this.look("ledger", () => this.search.records(query)).then(this.paced);
  }

  head(): Promise<LedgerState> {
    return this.look("ledger", () => ({ ...this.storeView.head, events: { ...this.storeView.events } }));
  }

  changed(signal: AbortSignal): Promise<void> {
    if (this.closed) return Promise.reject(closedError());
    // Checks other processes only while a caller waits.
    this.poll ??= setInterval(() => void this.lookForOthers(), POLL_MS).unref();
    return this.signal.wait(signal);
  }

  async ready(): Promise<void> {
    this.assertOpen();
    if (this.committer.problem !== undefined) throw this.committer.problem;
    // Runs an empty batch up to the write: lock, files in place, no recovery pending.
    await this.commits.submit({ run: () => undefined });
    this.probing ??= this.tryDisk().finally(() => {
      this.probing = undefined;
    });
    await inTime(this.probing);
  }

  async scrub(): Promise<void> {
    this.assertOpen();
    try {
      await this.committer.exclusively(() => this.checkpointer.rotate());
      await this.checkpointer.finish();
      await this.parts.helper.ask("shrink", undefined);
    } catch (error) {
      throw error instanceof SvcError ? error : unavailable(error);
    }
  }

  async backup(scratch: string): Promise<StoreBackup> {
    this.assertOpen();
    const { log, storeView, committer } = this;
    const { disk, checkpoint_path } = this.parts;
    return takeBackup({ log, storeView, committer, disk, checkpoint_path }, scratch);
  }

  close(): Promise<void> {
    this.closing ??= this.shutDown();
    return this.closing;
  }

  private async shutDown(): Promise<void> {
    await this.commits.close();
    this.closed = true;
    clearInterval(this.poll);
    this.signal.notify();
    // This checkpoint only speeds up the next start, so a hung disk must not block the close.
    await inTime(this.lastCheckpoint()).catch(() => {});
    await this.letGo();
  }

  private async lastCheckpoint(): Promise<void> {
    await this.checkpointer.settle();
    if (this.committer.isStill) return;
    const { active } = this.storeView.overlays;
    if (active.changes >= CLOSE_CHANGES) await this.committer.exclusively(() => this.checkpointer.rotate());
    await this.checkpointer.finish();
  }

  private async letGo(): Promise<void> {
    await this.log.close();
    await this.parts.helper.close();
    await this.committer.close();
  }

  private async commit(
    batch: readonly PendingUnit[],
    until: number,
    leave: () => void,
  ): Promise<WrittenBatch | undefined> {
    const written = await this.doubting(this.committer.commit(batch, until, leave, this.checkpointer));
    this.checkpointer.poke();
    return written && { durable: this.doubting(written.durable).then(() => this.announce()) };
  }

  private async doubting<T>(attempt: Promise<T>): Promise<T> {
    try {
      return await attempt;
    } catch (error) {
      this.health.raise();
      throw error;
    }
  }

  /**
   * Runs a read on the current view when its turn comes, and resolves once that view is durable. This process or another may have written
   * the data a moment ago, and a power cut must not remove data that a caller has seen.
   */
  private async look<T>(what: "documents" | "ledger", find: () => T | Promise<T>, units = 1): Promise<T> {
    const turn = this.pacer.spend(units);
    if (turn !== undefined) await turn;
    const wait = this.refresh();
    if (wait !== undefined) await wait;
    this.committer.assertKnown(what);
    const found = find();
    const durable = this.committer.whenDurable();
    if (durable === undefined) return found;
    const [value] = await Promise.all([found, inTime(durable.catch(rethrowUnavailable))]);
    return value;
  }

  private readonly paced = <T>(rows: T[]): T[] | Promise<T[]> => {
    const turn = this.pacer.spend(rows.length);
    return turn === undefined ? rows : turn.then(() => rows);
  };

  /** Wakes the waiters if anything has changed since the last time, regardless of the source. */
  private announce(): void {
    const { version } = this.storeView;
    if (version === this.announced) return;
    this.announced = version;
    this.signal.notify();
  }

  /** Applies commits of other processes. Returns undefined if there is nothing to wait for, the usual case. */
  private refresh(): Promise<void> | undefined {
    this.assertOpen();
    if (this.committer.isStill) return undefined;
    const news = this.log.news(false);
    if (news === "reload") return this.committer.reload();
    for (const { generation, units } of news) this.storeView.apply(generation, units);
    if (news.length > 0) this.checkpointer.notice();
    return undefined;
  }

  private async lookForOthers(): Promise<void> {
    if (this.signal.waiting === 0) {
      clearInterval(this.poll);
      this.poll = undefined;
      return;
    }
    try {
      await this.refresh();
    } catch {
      // Waiting callers read again anyway, and then get the error.
    }
    this.announce();
  }

  /** Checks that the disk accepts a record now. Rejects if it is read-only, full, failing or hung. */
  private async tryDisk(): Promise<void> {
    await this.probe(0);
    await this.health.settle(async () => {
      await this.probe(this.log.grown_to);
      await this.transact({ run: (tx) => tx.delete("meta", WRITE_TEST_KEY) });
    });
  }

  /** Writes a sparse file with data only at that position. */
  private async probe(position: number): Promise<void> {
    const { disk, folder } = this.parts;
    const path = join(folder, `probe-${process.pid}`);
    try {
      const fd = await disk.open(path, "w");
      try {
        await writeAll(disk, fd, Buffer.alloc(4_096, 0x2e), position);
        await disk.datasync(fd);
      } finally {
        await disk.close(fd);
        await disk.unlink(path);
      }
    } catch (error) {
      throw unavailable(error);
    }
  }

  private assertOpen(): void {
    if (this.closed) throw closedError();
  }
}

const closedError = (): SvcError => new SvcError("unavailable", "the store is closed");

function rethrowUnavailable(error: unknown): never {
  throw error instanceof SvcError ? error : unavailable(error);
}

function unavailable(cause: unknown): SvcError {
  const code = errorCode(cause);
  return new SvcError(
    "unavailable",
    `ledger unavailable: the data directory cannot be written${code ? ` (${code})` : ""}`,
    {
      cause,
    },
  );
}

function inTime(work: Promise<void>): Promise<void> {
  return withTimeout(work, SERVICE_LIMITS.store_deadline_ms, () => {
    throw new SvcError("unavailable", "ledger unavailable: the disk does not answer in time");
  });
}
