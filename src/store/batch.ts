/**
 * The part of a transaction that every store shares: units run in turn over one view, each sees what
 * the one before it left, one that throws leaves nothing. What the batch changed is then the store's
 * to write. No locking and no I/O here.
 */
import type { Head, LedgerRecord, RecordDraft } from "../ledger/record.ts";
import { sealRecord } from "../ledger/record.ts";
import type { Key, Tx, Unit } from "./port.ts";
import type { TableName, Tables } from "./tables.ts";

type AnyDoc = Tables[TableName];

/** A change of one document; `doc` is undefined for a deletion. */
export interface Change {
  table: TableName;
  key: string;
  doc: AnyDoc | undefined;
}

/** Thrown by a view that would have to go to the network for a document; the unit is run again. */
export class MissingFact extends Error {
  readonly table: TableName;
  readonly key: string;
  constructor(table: TableName, key: string) {
    super(`not fetched: ${table}/${key}`);
    this.table = table;
    this.key = key;
  }
}

export type View = (table: TableName, key: string) => AnyDoc | undefined;

/** A unit waiting for its batch, and what became of it. */
export interface Pending {
  readonly unit: Unit<unknown>;
  outcome: { ok: true; value: unknown } | { ok: false; error: unknown } | undefined;
}

const address = (table: TableName, key: string): string => `${table}\u0000${key}`;

/** What one unit that went through left behind, for stores that write units apart. */
export interface CommittedUnit {
  /** Where the chain stands behind it. */
  readonly head: Head;
  readonly lines: readonly string[];
  readonly records: readonly LedgerRecord[];
  /** Every document it changed, each once, in its final form. */
  readonly changes: readonly Change[];
}

export class Batch {
  head: Head;
  readonly lines: string[] = [];
  readonly records: LedgerRecord[] = [];
  /** The units that left something, in order. */
  readonly units: CommittedUnit[] = [];
  private readonly staged = new Map<string, Change>();
  private readonly view: View;

  constructor(head: Head, view: View) {
    this.head = head;
    this.view = view;
  }

  /** Every document the batch changed, each once, in its final form. */
  get changes(): Iterable<Change> {
    return this.staged.values();
  }

  get isEmpty(): boolean {
    return this.lines.length === 0 && this.staged.size === 0;
  }

  /** Runs one unit and keeps its outcome. Only MissingFact passes through; the unit then has not run. */
  run(pending: Pending): void {
    const tx = new UnitTx(this.head, (table, key) => this.read(table, key));
    try {
      const value = pending.unit.run(tx);
      this.keep(tx);
      pending.outcome = { ok: true, value };
    } catch (error) {
      if (error instanceof MissingFact) throw error;
      pending.outcome = { ok: false, error };
    }
  }

  private keep(tx: UnitTx): void {
    if (tx.writes.size === 0 && tx.lines.length === 0) return;
    this.head = tx.head;
    for (const [at, change] of tx.writes) this.staged.set(at, change);
    this.lines.push(...tx.lines);
    this.records.push(...tx.records);
    this.units.push({
      head: tx.head,
      lines: tx.lines,
      records: tx.records,
      changes: [...tx.writes.values()],
    });
  }

  private read(table: TableName, key: string): AnyDoc | undefined {
    const change = this.staged.get(address(table, key));
    return change === undefined ? this.view(table, key) : change.doc;
  }
}

class UnitTx implements Tx {
  head: Head;
  readonly writes = new Map<string, Change>();
  readonly lines: string[] = [];
  readonly records: LedgerRecord[] = [];
  private readonly view: View;

  constructor(head: Head, view: View) {
    this.head = head;
    this.view = view;
  }

  get<N extends TableName>(table: N, key: string): Tables[N] | undefined {
    const change = this.writes.get(address(table, key));
    return (change === undefined ? this.view(table, key) : change.doc) as Tables[N] | undefined;
  }

  put<N extends TableName>(table: N, key: string, doc: Tables[N]): void {
    this.writes.set(address(table, key), { table, key, doc });
  }

  delete(table: TableName, key: string): void {
    this.writes.set(address(table, key), { table, key, doc: undefined });
  }

  append(draft: RecordDraft): LedgerRecord {
    const { record, line } = sealRecord(draft, this.head);
    this.head = { records: record.seq + 1, hash: record.hash };
    this.lines.push(line);
    this.records.push(record);
    return record;
  }
}

export function needsOf({ needs }: Unit<unknown>): readonly Key[] {
  return typeof needs === "function" ? needs() : (needs ?? []);
}

/** All keys that a batch's units say they will read, each once. */
export function declaredNeeds(batch: readonly Pending[]): Key[] {
  const seen = new Map<string, Key>();
  for (const pending of batch) {
    for (const need of needsOf(pending.unit)) seen.set(address(need[0], need[1]), need);
  }
  return [...seen.values()];
}
