/**
 * Runs the units of a batch. All stores share it: units run in turn over one view, each sees the changes of earlier
 * units, and a unit that throws leaves nothing. The store then writes the changes. No locking and no I/O here.
 */
import type { DocKey, StoreTx, UnitOfWork } from "../govern/port/store.ts";
import { SEQ_FIELDS, type TableDocs, type TableName } from "../govern/port/tables.ts";
import type { LedgerHead, LedgerRecord, RecordDraft } from "../ledger/record.ts";
import { sealRecord } from "../ledger/record.ts";

type AnyDoc = TableDocs[TableName];

/** A change of one document. `doc` is undefined for a deletion. */
export interface DocChange {
  table: TableName;
  key: string;
  doc: AnyDoc | undefined;
  /** The change that an earlier unit of the batch made to the same document. */
  before: DocChange | undefined;
}

/**
 * Thrown by a view that lacks documents and needs the network to fetch them. The unit then runs again. Not an Error: no
 * reader sees it, and a stack trace would cost more than the unit.
 */
export class MissingDocs {
  readonly keys: readonly DocKey[];
  constructor(keys: readonly DocKey[]) {
    this.keys = keys;
  }
}

/** Thrown if a unit reads the head before the batch has one. The batch runs again once it has. */
export class HeadNeeded {}

/** Provisional head of a batch without a position: after every possible record. */
const PROVISIONAL_HEAD: LedgerHead = { records: 2 ** 52, hash: "" };

export type DocView = (table: TableName, key: string) => AnyDoc | undefined;

/** A unit that waits for its batch, and its outcome. */
export interface PendingUnit {
  readonly unit: UnitOfWork<unknown>;
  outcome: { ok: true; value: unknown; wrote: boolean } | { ok: false; error: unknown } | undefined;
}

/** The effects of one successful unit, for stores that write units separately. */
export interface CommittedUnit {
  /** The head after the unit. */
  readonly head: LedgerHead;
  readonly lines: readonly string[];
  readonly records: readonly LedgerRecord[];
  /** Every changed document, each once, in its final form. */
  readonly changes: readonly DocChange[];
}

/** Changes by table and key, each key once. Two levels, so that no lookup builds a string. */
class Changes {
  private readonly tables = new Map<TableName, Map<string, DocChange>>();

  get(table: TableName, key: string): DocChange | undefined {
    return this.tables.get(table)?.get(key);
  }

  set(change: DocChange): void {
    const docs = this.tables.get(change.table);
    if (docs === undefined) this.tables.set(change.table, new Map([[change.key, change]]));
    else docs.set(change.key, change);
  }

  delete(table: TableName, key: string): void {
    this.tables.get(table)?.delete(key);
  }

  *[Symbol.iterator](): IterableIterator<DocChange> {
    for (const docs of this.tables.values()) yield* docs.values();
  }
}

export class UnitBatch {
  head: LedgerHead;
  readonly lines: string[] = [];
  readonly records: LedgerRecord[] = [];
  /** Every document that the batch changed, each once, in its final form. */
  readonly changes = new Changes();
  /** The units with effects, in order. */
  readonly units: CommittedUnit[] = [];
  private is_sealed: boolean;
  /** Whether the current unit can read provisional positions. */
  private keeps_places = false;
  private readonly view: DocView;
  /** Whether the view needs the network for a document. Undefined if it never does. */
  private readonly lacks: ((table: TableName, key: string) => boolean) | undefined;
  /** Reads documents into the view. Undefined if that saves nothing. */
  private readonly prefetch: ((keys: readonly DocKey[]) => void) | undefined;
  /** The changes of the current unit. */
  private written: DocChange[] = [];

  /** Without a head, the batch has no position yet and seals its records later. */
  constructor(
    head: LedgerHead | undefined,
    view: DocView,
    lacks?: (table: TableName, key: string) => boolean,
    prefetch?: (keys: readonly DocKey[]) => void,
  ) {
    this.head = head ?? PROVISIONAL_HEAD;
    this.is_sealed = head !== undefined;
    this.view = view;
    this.lacks = lacks;
    this.prefetch = prefetch;
  }

  get isEmpty(): boolean {
    return this.units.length === 0;
  }

  /** Runs one unit and stores its outcome. Only MissingFact and HeadNeeded escape; then the unit has not run. */
  run(pending: PendingUnit): void {
    const { head } = this;
    this.keeps_places = pending.unit.keeps_places === true;
    const count = this.records.length;
    this.written = [];
    try {
      const value = pending.unit.run(this.tx);
      pending.outcome = { ok: true, value, wrote: this.keep(count) };
    } catch (error) {
      this.takeBack(head, count);
      if (error instanceof MissingDocs || error instanceof HeadNeeded) throw error;
      pending.outcome = { ok: false, error };
    }
  }

  private readonly tx: StoreTx = new UnitTx(this);

  read(table: TableName, key: string): AnyDoc | undefined {
    const change = this.changes.get(table, key);
    return change === undefined ? this.view(table, key) : change.doc;
  }

  expect(keys: readonly DocKey[]): void {
    this.prefetch?.(keys);
    const { lacks } = this;
    if (lacks === undefined) return;
    const missing = keys.filter(
      ([table, key]) => this.changes.get(table, key) === undefined && lacks(table, key),
    );
    if (missing.length > 0) throw new MissingDocs(missing);
  }

  write(table: TableName, key: string, doc: AnyDoc | undefined): void {
    const before = this.changes.get(table, key);
    if (before !== undefined && this.written.includes(before)) {
      before.doc = doc;
      return;
    }
    const change = { table, key, doc, before };
    this.changes.set(change);
    this.written.push(change);
  }

  append(draft: RecordDraft): LedgerRecord {
    if (!this.is_sealed) {
      const record = unplaced(draft, this.keeps_places ? this.head.records : undefined);
      this.head = { records: this.head.records + 1, hash: "" };
      this.records.push(record);
      return record;
    }
    const { record, line } = sealRecord(draft, this.head);
    this.head = { records: record.seq + 1, hash: record.hash };
    this.lines.push(line);
    this.records.push(record);
    return record;
  }

  /** The head as a unit sees it. */
  get known_head(): LedgerHead {
    if (!this.is_sealed) throw new HeadNeeded();
    return this.head;
  }

  /** Gives the batch its position: seals its records there, and shifts the positions in its documents. */
  seal(head: LedgerHead): void {
    this.is_sealed = true;
    this.head = head;
    for (const unsealed of this.records) {
      const { record, line } = sealRecord(shown(unsealed), this.head);
      this.head = { records: record.seq + 1, hash: record.hash };
      this.lines.push(line);
    }
    for (const { table, doc } of this.changes) {
      const fields = SEQ_FIELDS[table] as readonly string[] | undefined;
      if (fields === undefined || doc === undefined) continue;
      const places = doc as Record<string, number | null>;
      for (const field of fields) {
        const place = places[field];
        if (typeof place === "number" && place >= PROVISIONAL_HEAD.records)
          places[field] = place - PROVISIONAL_HEAD.records + head.records;
      }
    }
  }

  /** Returns whether the unit had effects. */
  private keep(count: number): boolean {
    if (this.written.length === 0 && this.records.length === count) return false;
    this.units.push({
      head: this.head,
      lines: this.lines.slice(count),
      records: this.records.slice(count),
      changes: this.written,
    });
    return true;
  }

  private takeBack(head: LedgerHead, count: number): void {
    this.head = head;
    this.records.length = count;
    if (this.is_sealed) this.lines.length = count;
    for (const { table, key, before } of this.written) {
      if (before === undefined) this.changes.delete(table, key);
      else this.changes.set(before);
    }
  }
}

/** Shared by all records, and deleted in the order that leaves a plain object, because every call pays for both. */
const HIDDEN: PropertyDescriptor = {
  get() {
    throw new HeadNeeded();
  },
  enumerable: true,
  configurable: true,
};

/**
 * A record without a position. A unit that reads the position runs again later, except for a `seq` that it only stores.
 */
function unplaced(draft: RecordDraft, seq: number | undefined): LedgerRecord {
  const record = draft as LedgerRecord;
  if (seq === undefined) Object.defineProperty(record, "seq", HIDDEN);
  else record.seq = seq;
  Object.defineProperty(record, "prev", HIDDEN);
  return Object.defineProperty(record, "hash", HIDDEN);
}

/** Returns the same record, ready to be sealed. */
function shown(record: Partial<LedgerRecord>): RecordDraft {
  delete record.hash;
  delete record.prev;
  delete record.seq;
  return record as RecordDraft;
}

/** The transaction that a unit sees. */
class UnitTx implements StoreTx {
  private readonly batch: UnitBatch;

  constructor(batch: UnitBatch) {
    this.batch = batch;
  }

  get head(): LedgerHead {
    return this.batch.known_head;
  }

  get<N extends TableName>(table: N, key: string): TableDocs[N] | undefined {
    return this.batch.read(table, key) as TableDocs[N] | undefined;
  }

  expect(keys: readonly DocKey[]): void {
    this.batch.expect(keys);
  }

  put<N extends TableName>(table: N, key: string, doc: TableDocs[N]): void {
    this.batch.write(table, key, doc);
  }

  delete(table: TableName, key: string): void {
    this.batch.write(table, key, undefined);
  }

  append(draft: RecordDraft): LedgerRecord {
    return this.batch.append(draft);
  }
}

export function needsOf({ needs }: UnitOfWork<unknown>): readonly DocKey[] {
  return typeof needs === "function" ? needs() : (needs ?? []);
}

/** Lists the keys that the units of a batch declare as reads, each once. */
export function declaredNeeds(batch: readonly PendingUnit[]): DocKey[] {
  const seen = new Map<string, DocKey>();
  for (const pending of batch) {
    for (const need of needsOf(pending.unit)) seen.set(`${need[0]}\u0000${need[1]}`, need);
  }
  return [...seen.values()];
}
