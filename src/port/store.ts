/**
 * What the service asks of a store. Share the record format and the tests between stores, not the
 * locking: each implementation is native to its engine. Every sentence here has a test in the store
 * contract suite.
 */
import type { Head, LedgerRecord, RecordDraft } from "../ledger/record.ts";
import type { TableName, Tables } from "./tables.ts";

/** A document's address. */
export type Key = readonly [table: TableName, key: string];

/**
 * One atomic piece of work over the state and the ledger. `run` is synchronous and reads only through
 * its `tx`; it may be run more than once before it counts (a store that must fetch over a network
 * fetches what `needs` names, and runs `run` again when it reads something that was not named), so it
 * must have no other effects. One that throws leaves nothing behind.
 */
export interface Unit<T> {
  /**
   * A hint that saves round trips; correctness never depends on it. A function is called only by a store
   * that has round trips to save.
   */
  needs?: readonly Key[] | (() => readonly Key[]);
  /**
   * Whose part of a batch it takes, a tenant's: where more wait than a batch holds, every share gets the same part of
   * it. Units of one share stay in their order.
   */
  share?: string | undefined;
  /**
   * It looks at the places of its own records (`seq`) only to keep them in the fields that PLACES names. Such a unit can
   * be decided before its place is known; any other that looks at a place, or at the head, waits until it is.
   */
  keeps_places?: boolean | undefined;
  run(tx: Tx): T;
}

export interface Tx {
  /** The document as earlier units of the batch, and this one, left it. Do not change it in place. */
  get<N extends TableName>(table: N, key: string): Tables[N] | undefined;
  /** Says what will be read next, so that a store with round trips fetches it all at once. Only a hint. */
  expect(keys: readonly Key[]): void;
  put<N extends TableName>(table: N, key: string, doc: Tables[N]): void;
  delete(table: TableName, key: string): void;
  /** Adds a record to the chain, in the order of calls. */
  append(draft: RecordDraft): LedgerRecord;
  /** Where the chain stands, this unit's own records included. */
  readonly head: Head;
}

export interface ListQuery {
  owner?: string | undefined;
  /** One state, or any of several. */
  tag?: string | readonly string[] | undefined;
  /** Only this tenant's; for the tables that `hasTenants`. A document keeps its tenant until it is deleted. */
  tenant?: string | undefined;
  /** Bounds on `sort`, both inclusive. */
  from?: number | undefined;
  to?: number | undefined;
  /** Continue behind this row; it need not exist any more. */
  after?: { sort: number; key: string } | undefined;
  order?: "asc" | "desc" | undefined;
  limit: number;
}

export interface CountQuery {
  owner?: string | undefined;
  tag?: string | undefined;
  tenant?: string | undefined;
}

export interface DocRow<N extends TableName> {
  key: string;
  sort: number;
  doc: Tables[N];
}

export interface RecordQuery {
  /** Bounds on `seq`, both inclusive. */
  from?: number | undefined;
  to?: number | undefined;
  run_id?: string | undefined;
  event?: string | readonly string[] | undefined;
  actor?: string | undefined;
  tool?: string | undefined;
  /** Only this tenant's, at a cost that its neighbours' records have no part in. */
  tenant?: string | undefined;
  since_ms?: number | undefined;
  until_ms?: number | undefined;
  /** Plain text that the record's line must contain, in any case. */
  q?: string | undefined;
  order?: "asc" | "desc" | undefined;
  limit: number;
}

export interface LedgerState extends Head {
  /** How many records of each event the ledger holds. */
  events: Record<string, number>;
}

/** A copy that follows the store, for what only looks. Nothing that decides may read it. */
export interface Replica {
  readonly reads: Pick<Store, "get" | "list" | "count" | "records" | "head">;
  /** How old the newest state of the store is that it is known to have; null where that is not known. */
  readonly lag_ms: number | null;
  readonly max_lag_ms: number;
  /** Whether its lag is within the bound now; looks where that is not known. */
  isFresh(): Promise<boolean>;
}

/** Where the replica is, and how far it may be behind to be asked. */
export interface ReplicaPlace {
  url: string;
  max_lag_ms: number;
}

export interface Backup {
  /** Where the ledger stands in it. */
  head: Head;
  files: readonly BackupFile[];
  close(): Promise<void>;
}

/** The first `size` bytes of an open file. */
export interface BackupFile {
  name: string;
  fd: number;
  size: number;
}

export interface Store {
  readonly kind: "memory" | "files" | "sqlite" | "postgres";

  /**
   * Runs the unit and answers once its records and documents are durable. Units of one process and of
   * several see each other's effects as if run one after the other, and what a unit has seen is durable,
   * too, before it is answered. Rejects with `unavailable` when that could not be had in time; then no part
   * of the unit is left, or the error is a `MayBeFound`, which says so.
   */
  transact<T>(unit: Unit<T>): Promise<T>;

  // Every read sees what any process committed last, and is answered when that is durable.

  /** A document as this process or any other last left it. */
  get<N extends TableName>(table: N, key: string): Promise<Tables[N] | undefined>;
  /** Documents in (`sort`, key) order. */
  list<N extends TableName>(table: N, query: ListQuery): Promise<DocRow<N>[]>;
  count(table: TableName, query?: CountQuery): Promise<number>;

  /** Committed ledger lines (canonical JSON, no line break), in `seq` order. */
  records(query: RecordQuery): Promise<string[]>;
  head(): Promise<LedgerState>;

  /**
   * Resolves when anything may have changed, in this process or another, or when the signal aborts.
   * A wake-up without a change is allowed; a change without a wake-up is not.
   */
  changed(signal: AbortSignal): Promise<void>;

  /** Throws `unavailable` or `corrupt`, with what is wrong, when decisions cannot be recorded now. */
  ready(): Promise<void>;

  /** Drops deleted documents from the medium itself as far as the engine can (after a purge). */
  scrub(): Promise<void>;

  /**
   * A whole copy of one moment while everybody goes on, as files of a data folder; what has to be written for it goes
   * into the folder `scratch`. Absent where the engine has means of its own.
   */
  backup?(scratch: string): Promise<Backup>;

  /** Where reads may be sent that need not be the newest; absent where there is none. */
  readonly replica?: Replica | undefined;

  /** Finishes what is under way and lets go of everything. Further calls reject. */
  close(): Promise<void>;
}
