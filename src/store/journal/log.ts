/**
 * The part that differs between the files and sqlite stores: how they order units and make them durable. They share
 * everything else (checkpoints, overlays, lists, searches).
 */
import type { BackupFile } from "../../govern/port/store.ts";
import { SvcError } from "../../kernel/errors.ts";
import type { CommittedUnit } from "../batch.ts";
import type { CheckpointPosition } from "./checkpoint/checkpoint.ts";
import type { JournaledDocs, UnitBlock } from "./lines/block.ts";
import type { LineReader } from "./search.ts";

/** Units of one journal, in order. */
export interface JournalUnits {
  generation: number;
  units: readonly UnitBlock[];
}

/**
 * The trustworthy part of the store. Without the journal, every document may be outdated. Without a reference for the
 * ledger, its end may be, too.
 */
export type StoreIntegrity = "everything" | "ledger" | "nothing";

export interface LoadedLog {
  base: CheckpointPosition;
  /** Every journal after the checkpoint, oldest first. The last is the active one, even if empty. */
  journals: JournalUnits[];
  /** Why the log refuses appends. The readable content is still in `journals`. */
  problem: SvcError | undefined;
  known: StoreIntegrity;
}

/** The error for a log that is older than the data this process has seen. */
export function olderStateError(what: string): SvcError {
  return new SvcError(
    "corrupt",
    `${what} was set back: records or working data that this process knew are gone; restore the newest state and start again`,
  );
}

/** Opens a file for reading until the copy is complete. */
export type OpenForCopy = (path: string) => Promise<number>;

/** Returns the files of a log at one moment, for a checkpoint with this base. Temporary files go into `scratch`. */
export type PinnedLog = (base: CheckpointPosition, scratch: string) => Promise<BackupFile[]>;

export interface StoreLog extends LineReader {
  readonly kind: "files" | "sqlite";
  /** The names of the log's files, for messages. */
  readonly what: string;
  /** The length of the active journal, which a crash would have to replay. */
  readonly journal_bytes: number;
  /** An identifier of the log's position, which only a log with the same history can have. */
  readonly position: string;
  /** The length of a file that grows with every record. A size limit on that file also limits the ledger. */
  readonly grown_to: number;

  /** Takes the writer lock across all processes. Rejects with `unavailable` at `until`. */
  lock(until: number): Promise<void>;
  /** Releases the lock, in any state of the log. */
  unlock(): void;

  /**
   * Returns the units committed since the last call. Returns `reload` if it cannot continue from the known position;
   * then the caller must call `load` under the lock. Without the lock, it does not see a batch in progress.
   */
  news(locked: boolean): JournalUnits[] | "reload";

  /** Creates an empty log if there is no checkpoint yet, unless a ledger already exists. Runs under the lock. */
  create(): Promise<LoadedLog>;

  /**
   * Reads everything after the checkpoint, compares it with the ledger and with the data this process knew, and repairs
   * it. Runs under the lock.
   */
  load(base: CheckpointPosition): Promise<LoadedLog>;

  /**
   * Appends the units and publishes them. Published data is never rolled back. Calls `leave` right before publishing,
   * which can throw. If it rejects, nothing remains, unless the error reports an unknown outcome. Runs under the lock.
   */
  write(units: readonly CommittedUnit[], journaled: JournaledDocs, leave: () => void): Promise<JournalUnits>;

  /** Makes everything durable that was read or written so far. */
  sync(): Promise<void>;

  /** Pins this moment for a later copy. Runs under the lock with an up-to-date view. */
  pin(open: OpenForCopy): Promise<PinnedLog>;

  /** Closes the journal durably and begins the next. Runs under the lock. */
  rotate(): Promise<void>;

  /** Whether a failure left something that only `recover` can fix. */
  readonly isDamaged: boolean;

  /** Drops handles in an unknown state after a failure, and opens them again. Runs under the lock. */
  recover(): Promise<void>;

  /** Makes everything durable again that a failed sync may have lost. Runs under the lock, after `load`. */
  resync(): Promise<void>;

  /** Called when a checkpoint contains all journals up to this one. */
  retire(generation: number): Promise<void>;

  close(): Promise<void>;
}
