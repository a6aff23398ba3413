/**
 * What the files and sqlite stores differ in: how units are put in order and made durable. Everything
 * else about them (checkpoints, overlays, lists, searches) is shared.
 */
import { SvcError } from "../../kernel/errors.ts";
import type { BackupFile } from "../../port/store.ts";
import type { CommittedUnit } from "../batch.ts";
import type { ToldSoFar, UnitBlock } from "./block.ts";
import type { Base } from "./checkpoint.ts";
import type { LineReader } from "./search.ts";

/** Units of one journal, in order. */
export interface Journaled {
  generation: number;
  units: readonly UnitBlock[];
}

/**
 * How much can still be told for certain. Without the journal every document may be older than it was; without
 * anything to hold the ledger against, so may its end.
 */
export type Knowledge = "everything" | "ledger" | "nothing";

export interface LoadedLog {
  base: Base;
  /** Every journal behind the checkpoint, oldest first, the one being written last, even if empty. */
  journals: Journaled[];
  /** Why nothing may be appended; what can be read is still in `journals`. */
  problem: SvcError | undefined;
  known: Knowledge;
}

/** What a process that knew more than it now finds has to say. */
export function setBack(what: string): SvcError {
  return new SvcError(
    "corrupt",
    `${what} was set back: records or working data that this process knew are gone; restore the newest state and start again`,
  );
}

/** Opens a file for reading until the copy is done with. */
export type OpenForCopy = (path: string) => Promise<number>;

/**
 * The files of a log as it was at one moment, beside a checkpoint with that base; what must be written goes to
 * `scratch`.
 */
export type PinnedLog = (base: Base, scratch: string) => Promise<BackupFile[]>;

export interface Log extends LineReader {
  readonly kind: "files" | "sqlite";
  /** The files it keeps, in words for a message. */
  readonly what: string;
  /** Bytes of the journal that is being written: what a crash would have to replay. */
  readonly journal_bytes: number;
  /** Where it stands, in words that only a log with the same history would find. */
  readonly position: string;
  /** The length of a file that must grow with every record: where that has a limit, recording has it, too. */
  readonly grown_to: number;

  /** Takes the lock that lets one process at a time add; rejects `unavailable` at `until`. */
  lock(until: number): Promise<void>;
  /** Lets go of the lock, whatever state the log is in. */
  unlock(): void;

  /**
   * Units that were committed since the last look. `reload` when it cannot tell from where it stands:
   * then `load` must, under the lock. Without the lock a batch under way is not seen.
   */
  news(locked: boolean): Journaled[] | "reload";

  /** Under the lock, when there is no checkpoint yet: an empty log, unless a ledger is there already. */
  create(): Promise<LoadedLog>;

  /**
   * Under the lock: everything behind the checkpoint, held against the ledger and against what this process knew
   * before, and repaired.
   */
  load(base: Base): Promise<LoadedLog>;

  /**
   * Under the lock: adds the units and lets others see them; what others may have seen is never taken back. `leave` is
   * called right before that, and may throw. If it rejects, nothing of them is left, unless with `MayBeFound`.
   */
  write(units: readonly CommittedUnit[], told: ToldSoFar, leave: () => void): Promise<Journaled>;

  /** Makes everything that was seen or written so far durable. */
  sync(): Promise<void>;

  /** Under the lock, with all news taken in: holds on to this moment for a copy that is made after it. */
  pin(open: OpenForCopy): Promise<PinnedLog>;

  /** Under the lock: closes the journal durably and begins the next. */
  rotate(): Promise<void>;

  /** Whether a failure has left something that only `recover` can put right. */
  readonly isDamaged: boolean;

  /** Under the lock: lets go of what a failure may have left in an unknown state, and opens it anew. */
  recover(): Promise<void>;

  /** Under the lock, after `load`: makes durable anew what a failed sync may have lost. */
  resync(): Promise<void>;

  /** A checkpoint has taken in journals up to this one. */
  retire(generation: number): Promise<void>;

  close(): Promise<void>;
}
