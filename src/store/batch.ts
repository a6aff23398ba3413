/**
 * The part of a transaction that every store shares: units run in turn over one view, each sees what
 * the one before it left, one that throws leaves nothing. What the batch changed is then the store's
 * to write. No locking and no I/O here.
 */
import type { Head, LedgerRecord, RecordDraft } from "../ledger/record.ts";
import { sealRecord } from "../ledger/record.ts";
import type { Key, Tx, Unit } from "../port/store.ts";
import { PLACES, type TableName, type Tables } from "../port/tables.ts";

type AnyDoc = Tables[TableName];

/** A change of one document; `doc` is undefined for a deletion. */
export interface DocChange {
  table: TableName;
  key: string;
  doc: AnyDoc | undefined;
  /** What an earlier unit of the batch had made of it. */
  before: DocChange | undefined;
}

/**
 * Thrown by a view that would have to go to the network for documents; the unit is run again. Not an error: no reader
 * is to see it, and a stack for each would cost more than the unit.
 */
export class MissingFact {
  readonly keys: readonly Key[];
  constructor(keys: readonly Key[]) {
    this.keys = keys;
  }
}

/** Thrown, likewise, where a unit asks where the chain stands before that is known; the batch is run again when it is. */
export class HeadNeeded {}

/** Where a batch begins that is run before its place is known: behind every record that there can be. */
const UNPLACED: Head = { records: 2 ** 52, hash: "" };

export type View = (table: TableName, key: string) => AnyDoc | undefined;

/** A unit waiting for its batch, and what became of it. */
export interface Pending {
  readonly unit: Unit<unknown>;
  outcome: { ok: true; value: unknown; wrote: boolean } | { ok: false; error: unknown } | undefined;
}

/** What one unit that went through left behind, for stores that write units apart. */
export interface CommittedUnit {
  /** Where the chain stands behind it. */
  readonly head: Head;
  readonly lines: readonly string[];
  readonly records: readonly LedgerRecord[];
  /** Every document it changed, each once, in its final form. */
  readonly changes: readonly DocChange[];
}

/** Changes by table and key, each key once. Two levels, so that no lookup has to build a string. */
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

export class Batch {
  head: Head;
  readonly lines: string[] = [];
  readonly records: LedgerRecord[] = [];
  /** Every document the batch changed, each once, in its final form. */
  readonly changes = new Changes();
  /** The units that left something, in order. */
  readonly units: CommittedUnit[] = [];
  private is_sealed: boolean;
  /** Whether the unit that runs now may look at places that are not the last word. */
  private keeps_places = false;
  private readonly view: View;
  /** Whether the view would have to go to the network for a document; absent where it never has to. */
  private readonly lacks: ((table: TableName, key: string) => boolean) | undefined;
  /** What the unit that runs now has changed. */
  private written: DocChange[] = [];

  /** Without a head its place is not known yet: its records are sealed later. */
  constructor(head: Head | undefined, view: View, lacks?: (table: TableName, key: string) => boolean) {
    this.head = head ?? UNPLACED;
    this.is_sealed = head !== undefined;
    this.view = view;
    this.lacks = lacks;
  }

  get isEmpty(): boolean {
    return this.units.length === 0;
  }

  /** Runs one unit and keeps its outcome. Only MissingFact and HeadNeeded pass through; the unit then has not run. */
  run(pending: Pending): void {
    const { head } = this;
    this.keeps_places = pending.unit.keeps_places === true;
    const count = this.records.length;
    this.written = [];
    try {
      const value = pending.unit.run(this.tx);
      pending.outcome = { ok: true, value, wrote: this.keep(count) };
    } catch (error) {
      this.takeBack(head, count);
      if (error instanceof MissingFact || error instanceof HeadNeeded) throw error;
      pending.outcome = { ok: false, error };
    }
  }

  private readonly tx: Tx = new UnitTx(this);

  read(table: TableName, key: string): AnyDoc | undefined {
    const change = this.changes.get(table, key);
    return change === undefined ? this.view(table, key) : change.doc;
  }

  expect(keys: readonly Key[]): void {
    const { lacks } = this;
    if (lacks === undefined) return;
    const missing = keys.filter(
      ([table, key]) => this.changes.get(table, key) === undefined && lacks(table, key),
    );
    if (missing.length > 0) throw new MissingFact(missing);
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

  /** Where the chain stands, for a unit. */
  get known_head(): Head {
    if (!this.is_sealed) throw new HeadNeeded();
    return this.head;
  }

  /** Gives the batch its place: seals its records there, and moves what its documents say of their places. */
  seal(head: Head): void {
    this.is_sealed = true;
    this.head = head;
    for (const unsealed of this.records) {
      const { record, line } = sealRecord(shown(unsealed), this.head);
      this.head = { records: record.seq + 1, hash: record.hash };
      this.lines.push(line);
    }
    for (const { table, doc } of this.changes) {
      const fields = PLACES[table] as readonly string[] | undefined;
      if (fields === undefined || doc === undefined) continue;
      const places = doc as unknown as Record<string, number | null>;
      for (const field of fields) {
        const place = places[field];
        if (typeof place === "number" && place >= UNPLACED.records)
          places[field] = place - UNPLACED.records + head.records;
      }
    }
  }

  /** Says whether the unit left anything. */
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

  private takeBack(head: Head, count: number): void {
    this.head = head;
    this.records.length = count;
    if (this.is_sealed) this.lines.length = count;
    for (const { table, key, before } of this.written) {
      if (before === undefined) this.changes.delete(table, key);
      else this.changes.set(before);
    }
  }
}

/** One getter for all of them, and taken away in the order that leaves a plain object: every call pays for both. */
const HIDDEN: PropertyDescriptor = {
  get() {
    throw new HeadNeeded();
  },
  enumerable: true,
  configurable: true,
};

/** A record that has no place yet; whoever looks at it nevertheless is run again when it has, but for a `seq` to keep. */
function unplaced(draft: RecordDraft, seq: number | undefined): LedgerRecord {
  const record = draft as LedgerRecord;
  if (seq === undefined) Object.defineProperty(record, "seq", HIDDEN);
  else record.seq = seq;
  Object.defineProperty(record, "prev", HIDDEN);
  return Object.defineProperty(record, "hash", HIDDEN);
}

/** The same record, ready to be sealed. */
function shown(record: Partial<LedgerRecord>): RecordDraft {
  delete record.hash;
  delete record.prev;
  delete record.seq;
  return record as RecordDraft;
}

/** What a unit sees of its batch. */
class UnitTx implements Tx {
  private readonly batch: Batch;

  constructor(batch: Batch) {
    this.batch = batch;
  }

  get head(): Head {
    return this.batch.known_head;
  }

  get<N extends TableName>(table: N, key: string): Tables[N] | undefined {
    return this.batch.read(table, key) as Tables[N] | undefined;
  }

  expect(keys: readonly Key[]): void {
    this.batch.expect(keys);
  }

  put<N extends TableName>(table: N, key: string, doc: Tables[N]): void {
    this.batch.write(table, key, doc);
  }

  delete(table: TableName, key: string): void {
    this.batch.write(table, key, undefined);
  }

  append(draft: RecordDraft): LedgerRecord {
    return this.batch.append(draft);
  }
}

export function needsOf({ needs }: Unit<unknown>): readonly Key[] {
  return typeof needs === "function" ? needs() : (needs ?? []);
}

/** All keys that a batch's units say they will read, each once. */
export function declaredNeeds(batch: readonly Pending[]): Key[] {
  const seen = new Map<string, Key>();
  for (const pending of batch) {
    for (const need of needsOf(pending.unit)) seen.set(`${need[0]}\u0000${need[1]}`, need);
  }
  return [...seen.values()];
}
