/**
 * When a journal is closed and taken into the checkpoint. The thread does the work from what is on
 * disk; until it has answered, the overlays go on knowing what the journal said, so a crash, a failure
 * or another process doing the same at any point changes nothing but the time a start takes.
 */
import { messageOf, SvcError } from "../../kernel/errors.ts";
import type { Base, Checkpoint } from "./checkpoint.ts";
import type { Log } from "./log.ts";
import type { Mirror } from "./mirror.ts";
import type { Helper } from "./side-thread.ts";

/** How long a journal may get: what a start has to replay, and how much memory the overlays take. */
export interface JournalBounds {
  changes: number;
  records: number;
  bytes: number;
}

export const JOURNAL_BOUNDS: JournalBounds = { changes: 8_000, records: 4_000, bytes: 4_000_000 };
/** Beyond this the checkpoint is failing for good, and memory must not pay for it. */
const JOURNAL_BYTES_MOST = 256_000_000;
const RETRY_MS = 1_000;
/** How long the process that closed a journal has to take it in before others try. */
const GRACE_MS = 3_000;
const NOTICE_MS = 500;

interface CheckpointerParts {
  log: Log;
  mirror: Mirror;
  helper: Helper;
  checkpoint: () => Checkpoint;
  /** Makes everything that this process has written or seen durable. */
  makeDurable(): Promise<void>;
  /** When no sync is under way; rejects if one failed meanwhile. */
  whenSynced(): Promise<void>;
  bounds: JournalBounds;
  warn(message: string, fields?: Record<string, unknown>): void;
}

export class Checkpointer {
  private readonly parts: CheckpointerParts;
  private working: Promise<void> | undefined;
  private notBefore = 0;
  private noticedAt = 0;
  /** The last journal that this process has closed itself. */
  private own = 0;
  private foreign: { generation: number; since: number } | undefined;

  constructor(parts: CheckpointerParts) {
    this.parts = parts;
  }

  get isWorking(): boolean {
    return this.working !== undefined;
  }

  /** Whether the journal is long enough to be closed, and may be. */
  get isDue(): boolean {
    const { log, mirror, bounds } = this.parts;
    const { active, frozen } = mirror.overlays;
    const isLong =
      active.changes >= bounds.changes ||
      active.records >= bounds.records ||
      log.journal_bytes >= bounds.bytes;
    return isLong && frozen.length === 0 && performance.now() >= this.notBefore;
  }

  /** Under the lock, before a batch: closes the journal once it is long enough; says whether it did. */
  async rotateIfDue(): Promise<boolean> {
    const { log } = this.parts;
    if (log.journal_bytes > JOURNAL_BYTES_MOST) {
      throw new SvcError("unavailable", "ledger unavailable: the checkpoint database cannot be written");
    }
    if (!this.isDue) return false;
    try {
      await this.rotate();
      return true;
    } catch (error) {
      // A longer journal is no reason to refuse a decision; a broken log is.
      if (log.isDamaged) throw error;
      this.failed("the journal could not be closed; it grows until it can", error);
      return false;
    }
  }

  /** Under the lock: closes the journal now. */
  async rotate(): Promise<void> {
    const { log, mirror, whenSynced } = this.parts;
    await whenSynced();
    await log.rotate();
    this.own = mirror.overlays.active.generation;
    mirror.rotate();
    this.notBefore = 0;
  }

  /** Not under the lock: lets the thread take in what is closed. */
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

  /** Takes in every closed journal, and rejects if that fails. */
  async finish(): Promise<void> {
    await this.working;
    await this.applyClosed();
  }

  async settle(): Promise<void> {
    await this.working;
  }

  /** Lets go of what another process has taken in. */
  notice(): void {
    const { mirror, checkpoint } = this.parts;
    const now = performance.now();
    if (mirror.overlays.frozen.length === 0 || this.isWorking || now - this.noticedAt < NOTICE_MS) return;
    this.noticedAt = now;
    const base = checkpoint().base();
    if (base !== undefined) mirror.release(base);
  }

  /** Whether there is a closed journal, and no other process is likely to be at it. */
  private isOurs(): boolean {
    const [first] = this.parts.mirror.overlays.frozen;
    if (first === undefined) return false;
    if (first.generation <= this.own) return true;
    this.notice();
    const now = performance.now();
    if (this.foreign?.generation !== first.generation)
      this.foreign = { generation: first.generation, since: now };
    return now - this.foreign.since >= GRACE_MS;
  }

  private async applyClosed(): Promise<void> {
    const { log, mirror, helper, checkpoint, makeDurable } = this.parts;
    if (mirror.overlays.frozen.length === 0) return;
    // The checkpoint must never know of anything that a power cut could still take from the log.
    await makeDurable();
    for (const { generation } of mirror.overlays.frozen) {
      const base = await helper.ask<Base>("apply", generation);
      // The first look behind a commit writes to shared memory, which a frozen disk would not let it do;
      // taken now, later reads need not.
      checkpoint().base();
      mirror.release(base);
      await log.retire(base.generation);
    }
    this.notBefore = 0;
  }

  private failed(message: string, error: unknown): void {
    this.notBefore = performance.now() + RETRY_MS;
    this.parts.warn(message, { error: messageOf(error) });
  }
}
