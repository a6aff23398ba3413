/**
 * A store that writes units to a log and moves them into a checkpoint database in the background. The
 * files and sqlite stores are this, over a log of their own.
 */
import { join } from "node:path";
import { within } from "../../kernel/deadline.ts";
import { SvcError } from "../../kernel/errors.ts";
import { LIMITS } from "../../kernel/limits.ts";
import type {
  Backup,
  CountQuery,
  DocRow,
  LedgerState,
  ListQuery,
  RecordQuery,
  Store,
  Unit,
} from "../../port/store.ts";
import type { TableName, Tables } from "../../port/tables.ts";
import type { Pending } from "../batch.ts";
import { type ChangeSignal, changeSignal } from "../change-signal.ts";
import { Doubt, TRIAL_KEY } from "../doubt.ts";
import { GroupCommit, type Written } from "../group-commit.ts";
import { takeBackup } from "./backup.ts";
import { Checkpointer, JOURNAL_BOUNDS, type JournalBounds } from "./checkpointer.ts";
import { Committer } from "./committer.ts";
import { type Disk, errorCode, nodeDisk, writeAll } from "./disk.ts";
import { countDocuments, listDocuments } from "./listing.ts";
import type { Log } from "./log.ts";
import { Mirror } from "./mirror.ts";
import { Reserve } from "./reserve.ts";
import { LedgerSearch, type Stretch } from "./search.ts";
import type { Helper } from "./side-thread.ts";

/** What a test may put in the place of the real thing. */
export interface LoggedStoreOptions {
  disk: Disk;
  helper: Helper;
  bounds: JournalBounds;
}

interface LoggedStoreParts extends LoggedStoreOptions {
  folder: string;
  checkpoint_path: string;
  warn(message: string, fields?: Record<string, unknown>): void;
  /** The log may ask where lines lie, which the store knows. */
  makeLog(locate: (from: number, to: number) => Stretch): Log;
}

/** The real things, where nothing else was asked for. */
export function withDefaults(helper: () => Helper, options: Partial<LoggedStoreOptions>): LoggedStoreOptions {
  return {
    disk: options.disk ?? nodeDisk,
    helper: options.helper ?? helper(),
    bounds: options.bounds ?? JOURNAL_BOUNDS,
  };
}

/** How often other processes are looked at for a caller that waits for a change. */
const POLL_MS = 100;
/** A journal this long is taken into the checkpoint at closing, so that the next start is quick. */
const CLOSE_CHANGES = 2_000;

export class LoggedStore implements Store {
  readonly kind: Log["kind"];
  private readonly parts: LoggedStoreParts;
  private readonly log: Log;
  private readonly mirror = new Mirror();
  private readonly reserve: Reserve;
  private readonly committer: Committer;
  private readonly checkpointer: Checkpointer;
  private readonly search: LedgerSearch;
  private readonly commits: GroupCommit;
  private readonly signal: ChangeSignal = changeSignal();
  /** The version of the mirror that waiters were last woken for. */
  private announced = 0;
  private poll: NodeJS.Timeout | undefined;
  private probing: Promise<void> | undefined;
  private readonly doubt = new Doubt();
  private closed = false;
  private closing: Promise<void> | undefined;

  private constructor(parts: LoggedStoreParts) {
    const { disk, folder, warn, helper, checkpoint_path, bounds } = parts;
    const { mirror } = this;
    this.parts = parts;
    this.log = parts.makeLog((from, to) => this.search.locate(from, to));
    this.kind = this.log.kind;
    this.reserve = new Reserve(disk, folder);
    const checkpoint = () => this.committer.checkpoint;
    this.search = new LedgerSearch(mirror, checkpoint, this.log);
    this.committer = new Committer({ log: this.log, mirror, reserve: this.reserve, checkpoint_path, warn });
    const makeDurable = async () => this.committer.whenDurable();
    const whenSynced = () => this.committer.whenSynced();
    this.checkpointer = new Checkpointer({
      log: this.log,
      mirror,
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
    // A full disk is no reason not to start: what was recorded can still be read.
    await store.reserve.fill().catch(() => {});
    return store;
  }

  transact<T>(unit: Unit<T>): Promise<T> {
    return this.commits.submit(unit);
  }

  get<N extends TableName>(table: N, key: string): Promise<Tables[N] | undefined> {
    return this.look("documents", () => this.mirror.get(table, key));
  }

  list<N extends TableName>(table: N, query: ListQuery): Promise<DocRow<N>[]> {
    const { overlays } = this.mirror;
    return this.look("documents", () => listDocuments(table, query, overlays, this.committer.checkpoint));
  }

  count(table: TableName, query: CountQuery = {}): Promise<number> {
    const { overlays } = this.mirror;
    return this.look("documents", () => countDocuments(table, query, overlays, this.committer.checkpoint));
  }

  records(query: RecordQuery): Promise<string[]> {
    return this.look("ledger", () => this.search.records(query));
  }

  head(): Promise<LedgerState> {
    return this.look("ledger", () => ({ ...this.mirror.head, events: { ...this.mirror.events } }));
  }

  changed(signal: AbortSignal): Promise<void> {
    if (this.closed) return Promise.reject(closedError());
    // Other processes are looked at only while a caller waits.
    this.poll ??= setInterval(() => void this.lookForOthers(), POLL_MS).unref();
    return this.signal.wait(signal);
  }

  async ready(): Promise<void> {
    this.assertOpen();
    if (this.committer.problem !== undefined) throw this.committer.problem;
    // The way of a batch up to the point of writing: lock, files in place, nothing to recover.
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

  async backup(scratch: string): Promise<Backup> {
    this.assertOpen();
    const { log, mirror, committer } = this;
    const { disk, checkpoint_path } = this.parts;
    return takeBackup({ log, mirror, committer, disk, checkpoint_path }, scratch);
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
    // Only the next start would be slower without it, so a disk that hangs does not hold this up.
    await inTime(this.lastCheckpoint()).catch(() => {});
    await this.letGo();
  }

  private async lastCheckpoint(): Promise<void> {
    await this.checkpointer.settle();
    if (this.committer.isStill) return;
    const { active } = this.mirror.overlays;
    if (active.changes >= CLOSE_CHANGES) await this.committer.exclusively(() => this.checkpointer.rotate());
    await this.checkpointer.finish();
  }

  private async letGo(): Promise<void> {
    await this.log.close();
    await this.parts.helper.close();
    await this.committer.close();
  }

  private async commit(
    batch: readonly Pending[],
    until: number,
    leave: () => void,
  ): Promise<Written | undefined> {
    const written = await this.doubting(this.committer.commit(batch, until, leave, this.checkpointer));
    this.checkpointer.poke();
    return written && { durable: this.doubting(written.durable).then(() => this.announce()) };
  }

  private async doubting<T>(attempt: Promise<T>): Promise<T> {
    try {
      return await attempt;
    } catch (error) {
      this.doubt.raise();
      throw error;
    }
  }

  /**
   * What `find` sees when it is called, told once that is durable: this process or another may have written it a
   * moment ago, and a power cut must not take back what a caller was shown.
   */
  private async look<T>(what: "documents" | "ledger", find: () => T | Promise<T>): Promise<T> {
    const wait = this.refresh();
    if (wait !== undefined) await wait;
    this.committer.assertKnown(what);
    const found = find();
    const durable = this.committer.whenDurable();
    if (durable === undefined) return found;
    const [value] = await Promise.all([found, inTime(durable.catch(rethrowUnavailable))]);
    return value;
  }

  /** Wakes whoever waits if anything has changed since the last time, whoever brought it in. */
  private announce(): void {
    const { version } = this.mirror;
    if (version === this.announced) return;
    this.announced = version;
    this.signal.notify();
  }

  /** Takes in what other processes have committed. Undefined when that is done already, the usual case. */
  private refresh(): Promise<void> | undefined {
    this.assertOpen();
    if (this.committer.isStill) return undefined;
    const news = this.log.news(false);
    if (news === "reload") return this.committer.reload();
    for (const { generation, units } of news) this.mirror.apply(generation, units);
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
      // Whoever waits asks again anyway, and is then told what is wrong.
    }
    this.announce();
  }

  /** Whether the disk would take a record now: a read-only, full, failing or hung one says so here. */
  private async tryDisk(): Promise<void> {
    await this.probe(0);
    await this.doubt.settle(async () => {
      await this.probe(this.log.grown_to);
      await this.transact({ run: (tx) => tx.delete("meta", TRIAL_KEY) });
    });
  }

  /** A file that has something at that place and nothing before it. */
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
    `ledger unavailable: the data folder cannot be written${code ? ` (${code})` : ""}`,
    {
      cause,
    },
  );
}

function inTime(work: Promise<void>): Promise<void> {
  return within(work, LIMITS.store_deadline_ms, () => {
    throw new SvcError("unavailable", "ledger unavailable: the disk does not answer in time");
  });
}
