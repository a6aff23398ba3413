/**
 * Decides when to close a journal and to apply it to the checkpoint. The thread works from the files on disk, and the
 * overlays keep the journal's changes until it has finished. So a crash, a failure or another process doing the same
 * only affects the time of the next start.
 */
import { messageOf, SvcError } from "../../../kernel/errors.ts";
import type { StoreLog } from "../log.ts";
import type { StoreView } from "../store-view.ts";
import type { CheckpointPosition, CheckpointReader } from "./checkpoint.ts";
import type { WorkerHandle } from "./worker-handle.ts";

/** The largest journal: bounds the replay at a start, and the memory of the overlays. */
export interface JournalBounds {
  changes: number;
  records: number;
  bytes: number;
}

export const JOURNAL_BOUNDS: JournalBounds = { changes: 8_000, records: 4_000, bytes: 4_000_000 };
/** Beyond this size the checkpoint fails permanently, and memory must not grow further. */
const MAX_JOURNAL_BYTES = 256_000_000;
const RETRY_MS = 1_000;
/** How long other processes wait for the process that closed a journal to apply it. */
const GRACE_MS = 3_000;
const NOTICE_MS = 500;

interface CheckpointerParts {
  log: StoreLog;
  storeView: StoreView;
  helper: WorkerHandle;
  checkpoint: () => CheckpointReader;
  /** Makes everything durable that this process has written or seen. */
  makeDurable(): Promise<void>;
  /** Resolves when no sync is in progress. Rejects if one failed in the meantime. */
  whenSynced(): Promise<void>;
  bounds: JournalBounds;
  warn(message: string, fields?: Record<string, unknown>): void;
}

export class JournalCheckpointer {
  private readonly parts: CheckpointerParts;
  private working: Promise<void> | undefined;
  private notBefore = 0;
  private noticedAt = 0;
  /** The last journal that this process closed. */
  private own = 0;
  private foreign: { generation: number; since: number } | undefined;

  constructor(parts: CheckpointerParts) {
    this.parts = parts;
  }

  get isWorking(): boolean {
    return this.working !== undefined;
  }

  /** Whether the journal is long enough to close, and can be closed. */
  get isDue(): boolean {
    const { log, storeView, bounds } = this.parts;
    const { active, frozen } = storeView.overlays;
    const isLong =
      active.changes >= bounds.changes ||
      active.records >= bounds.records ||
      log.journal_bytes >= bounds.bytes;
    return isLong && frozen.length === 0 && performance.now() >= this.notBefore;
  }

  /**
   * Closes the journal once it is long enough. Runs under the lock, before a batch. Returns whether it closed the
   * journal.
   */
  async rotateIfDue(): Promise<boolean> {
    const { log } = this.parts;
    if (log.journal_bytes > MAX_JOURNAL_BYTES) {
      throw new SvcError("unavailable", "ledger unavailable: the checkpoint database cannot be written");
    }
    if (!this.isDue) return false;
    try {
      await this.rotate();
      return true;
    } catch (error) {
      // A long journal does not justify refusing a decision. A broken log does.
      if (log.isDamaged) throw error;
      this.failed("the journal could not be closed; it grows until it can", error);
      return false;
    }
  }

  /** Closes the journal now. Runs under the lock. */
  async rotate(): Promise<void> {
    const { log, storeView, whenSynced } = this.parts;
    await whenSynced();
    await log.rotate();
    this.own = storeView.overlays.active.generation;
    storeView.rotate();
    this.notBefore = 0;
  }

  /** Lets the thread apply closed journals. Runs without the lock. */
  poke(): void {
    if (this.working !== undefined || performance.now() < this.notBefore || !this.isOurs()) return;
    this.working = this.applyClosed()
      .catch((error) =>
        this.failed("the checkpoint could not be moved; the journal is kept until it can", error),
      )
      .finally(() => {
        this.working = undefined;
      });
  }

  /** Applies every closed journal, and rejects if that fails. */
  async finish(): Promise<void> {
    await this.working;
    await this.applyClosed();
  }

  async settle(): Promise<void> {
    await this.working;
  }

  /** Drops overlays of journals that another process has applied. */
  notice(): void {
    const { storeView, checkpoint } = this.parts;
    const now = performance.now();
    if (storeView.overlays.frozen.length === 0 || this.isWorking || now - this.noticedAt < NOTICE_MS) return;
    this.noticedAt = now;
    const base = checkpoint().base();
    if (base !== undefined) storeView.release(base);
  }

  /** Whether there is a closed journal, and probably no other process is working on it. */
  private isOurs(): boolean {
    const [first] = this.parts.storeView.overlays.frozen;
    if (first === undefined) return false;
    if (first.generation <= this.own) return true;
    this.notice();
    const now = performance.now();
    if (this.foreign?.generation !== first.generation)
      this.foreign = { generation: first.generation, since: now };
    return now - this.foreign.since >= GRACE_MS;
  }

  private async applyClosed(): Promise<void> {
    const { log, storeView, helper, checkpoint, makeDurable } = this.parts;
    if (storeView.overlays.frozen.length === 0) return;
    // The checkpoint must never contain anything that a power cut could still remove from the log.
    await makeDurable();
    for (const { generation } of storeView.overlays.frozen) {
      const base = await helper.ask<CheckpointPosition>("apply", generation);
      // The first read after a commit writes to shared memory, which would fail on a frozen disk. Read now, so that
      // later reads need not.
      checkpoint().base();
      storeView.release(base);
      await log.retire(base.generation);
    }
    this.notBefore = 0;
  }

  private failed(message: string, error: unknown): void {
    this.notBefore = performance.now() + RETRY_MS;
    this.parts.warn(message, { error: messageOf(error) });
  }
}
