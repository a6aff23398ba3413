/**
 * The store port. Stores share the record format and the contract tests but not the locking: each implementation is
 * native to its engine. The store contract suite tests every sentence here.
 */
import type { LedgerHead, LedgerRecord, RecordDraft } from "../../ledger/record.ts";
import type { TableDocs, TableName } from "./tables.ts";

/** The table and key of a document. */
export type DocKey = readonly [table: TableName, key: string];

/**
 * One atomic transaction over the state and the ledger. `run` is synchronous, reads only through its `tx` and must have
 * no other effects, because a store can run it several times: a networked store fetches the documents in `needs`, and
 * runs `run` again after it read a document that was not among them. A unit that throws leaves nothing behind.
 */
export interface UnitOfWork<T> {
  /**
   * Documents to prefetch. Saves round trips; correctness never depends on it. Only networked stores call the function
   * form.
   */
  needs?: readonly DocKey[] | (() => readonly DocKey[]);
  /**
   * The tenant that the unit counts toward. When more units wait than fit in one batch, each share gets an equal part
   * of the batch. Units of one share keep their order.
   */
  share?: string | undefined;
  /**
   * Promises that the unit reads the `seq` of its own records only to store it in the fields listed in PLACES. The
   * store can run such a unit before its ledger position is known. Any other unit that reads a position or the head
   * waits for it.
   */
  keeps_places?: boolean | undefined;
  run(tx: StoreTx): T;
}

export interface StoreTx {
  /** Returns the document as earlier units of the batch and this unit left it. Do not mutate it. */
  get<N extends TableName>(table: N, key: string): TableDocs[N] | undefined;
  /** Announces the next reads, so that a networked store can fetch them in one round trip. Only a hint. */
  expect(keys: readonly DocKey[]): void;
  put<N extends TableName>(table: N, key: string, doc: TableDocs[N]): void;
  delete(table: TableName, key: string): void;
  /** Appends a record to the chain, in the order of calls. */
  append(draft: RecordDraft): LedgerRecord;
  /** The end of the chain, including this unit's own records. */
  readonly head: LedgerHead;
}

export interface ListQuery {
  owner?: string | undefined;
  /** One state, or any of several. */
  tag?: string | readonly string[] | undefined;
  /** Limits the result to one tenant, for tables with `hasTenants`. A document keeps its tenant until it is deleted. */
  tenant?: string | undefined;
  /** Bounds on `sort`, both inclusive. */
  from?: number | undefined;
  to?: number | undefined;
  /** Continue after this row, which may have been deleted. */
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
  doc: TableDocs[N];
}

export interface RecordQuery {
  /** Bounds on `seq`, both inclusive. */
  from?: number | undefined;
  to?: number | undefined;
  run_id?: string | undefined;
  event?: string | readonly string[] | undefined;
  actor?: string | undefined;
  tool?: string | undefined;
  /** Limits the result to one tenant. The cost must not depend on the records of other tenants. */
  tenant?: string | undefined;
  since_ms?: number | undefined;
  until_ms?: number | undefined;
  /** Plain text that the record's line must contain, case-insensitive. */
  q?: string | undefined;
  order?: "asc" | "desc" | undefined;
  limit: number;
}

export interface LedgerState extends LedgerHead {
  /** The number of ledger records per event. */
  events: Record<string, number>;
}

/** A read replica that follows the store. Code that decides must not read from it. */
export interface ReadReplica {
  readonly reads: Pick<StateStore, "get" | "list" | "count" | "records" | "head">;
  /** Age of the newest store state that the replica is known to have, or null if unknown. */
  readonly lag_ms: number | null;
  readonly max_lag_ms: number;
  /** Checks that the lag is within the bound. Measures the lag if it is unknown. */
  isFresh(): Promise<boolean>;
}

/** The replica's URL, and the largest lag at which this process uses it. */
export interface ReplicaConfig {
  url: string;
  max_lag_ms: number;
}

export interface StoreBackup {
  /** The end of the ledger in the backup. */
  head: LedgerHead;
  files: readonly BackupFile[];
  close(): Promise<void>;
}

/** The first `size` bytes of an open file. */
export interface BackupFile {
  name: string;
  fd: number;
  size: number;
}

export interface StateStore {
  readonly kind: "memory" | "files" | "sqlite" | "postgres";

  /**
   * Runs the unit and resolves once its records and documents are durable. Units of all processes are serializable, and
   * everything that a unit has read is durable, too, before it resolves. Rejects with `unavailable` if the store cannot
   * commit in time. In that case no part of the unit remains, unless the error is the one for an unknown commit
   * outcome.
   */
  transact<T>(unit: UnitOfWork<T>): Promise<T>;

  // Every read sees the last commit of any process, and resolves once that commit is durable.

  /** The document as the last commit of any process left it. */
  get<N extends TableName>(table: N, key: string): Promise<TableDocs[N] | undefined>;
  /** Documents in (`sort`, key) order. */
  list<N extends TableName>(table: N, query: ListQuery): Promise<DocRow<N>[]>;
  count(table: TableName, query?: CountQuery): Promise<number>;

  /** Committed ledger lines (canonical JSON, no line break), in `seq` order. */
  records(query: RecordQuery): Promise<string[]>;
  head(): Promise<LedgerState>;

  /**
   * Resolves when something may have changed, in this process or another, or when the signal aborts. Spurious wake-ups
   * are allowed; missed changes are not.
   */
  changed(signal: AbortSignal): Promise<void>;

  /** Throws `unavailable` or `corrupt`, with the cause, if the store cannot record decisions now. */
  ready(): Promise<void>;

  /** Removes deleted documents from the storage medium, as far as the engine can. Called after a purge. */
  scrub(): Promise<void>;

  /**
   * Takes a consistent copy, as files of a data directory, while other work continues. Temporary files go into
   * `scratch`. Undefined for engines with their own backup tools.
   */
  backup?(scratch: string): Promise<StoreBackup>;

  /** Milliseconds since 1970 by the clock that all servers share. Undefined for stores of one machine. */
  time?(): Promise<number>;

  /** The read replica for reads that need not be current. Undefined if none is configured. */
  readonly replica?: ReadReplica | undefined;

  /** Finishes the work in progress and releases all resources. Later calls reject. */
  close(): Promise<void>;
}
