/** The in-memory store, for tests and for the sandbox of simulations. Same port and same order, no disk. */
import type {
  CountQuery,
  DocRow,
  LedgerState,
  ListQuery,
  RecordQuery,
  StateStore,
  UnitOfWork,
} from "../../govern/port/store.ts";
import { TABLE_INDEX, TABLE_NAMES, type TableDocs, type TableName } from "../../govern/port/tables.ts";
import { SvcError } from "../../kernel/errors.ts";
import { EMPTY_HEAD, type LedgerHead } from "../../ledger/record.ts";
import { type PendingUnit, UnitBatch } from "../batch.ts";
import { type ChangeSignal, changeSignal } from "../change-signal.ts";
import { GroupCommit } from "../group-commit.ts";
import { compareRows, matchesList, matchesRecord, matchesTenant } from "../query-match.ts";

export class MemoryStore implements StateStore {
  readonly kind = "memory" as const;
  private readonly tables = new Map<TableName, Map<string, TableDocs[TableName]>>(
    TABLE_NAMES.map((name) => [name, new Map()]),
  );
  private readonly lines: string[] = [];
  private readonly events: Record<string, number> = {};
  private readonly signal: ChangeSignal = changeSignal();
  private readonly commits = new GroupCommit((batch) => this.commit(batch));
  private chain: LedgerHead = EMPTY_HEAD;
  private closed = false;

  transact<T>(unit: UnitOfWork<T>): Promise<T> {
    return this.commits.submit(unit);
  }

  /** Runs a unit synchronously. Only this store can; the sandbox depends on it. */
  transactSync<T>(unit: UnitOfWork<T>): T {
    const pending: PendingUnit = { unit, outcome: undefined };
    this.apply([pending]);
    const outcome = pending.outcome!;
    if (!outcome.ok) throw outcome.error;
    return outcome.value as T;
  }

  getSync<N extends TableName>(table: N, key: string): TableDocs[N] | undefined {
    return this.tables.get(table)!.get(key) as TableDocs[N] | undefined;
  }

  async get<N extends TableName>(table: N, key: string): Promise<TableDocs[N] | undefined> {
    this.assertOpen();
    return this.getSync(table, key);
  }

  async list<N extends TableName>(table: N, query: ListQuery): Promise<DocRow<N>[]> {
    this.assertOpen();
    return this.listSync(table, query);
  }

  listSync<N extends TableName>(table: N, query: ListQuery): DocRow<N>[] {
    const rows: DocRow<N>[] = [];
    for (const [key, doc] of this.tables.get(table)! as Map<string, TableDocs[N]>) {
      const entry = TABLE_INDEX[table](doc);
      if (matchesList(query, entry, key) && matchesTenant(query, table, doc))
        rows.push({ key, sort: entry.sort, doc });
    }
    rows.sort(compareRows(query.order));
    return rows.slice(0, query.limit);
  }

  async count(table: TableName, query: CountQuery = {}): Promise<number> {
    return (await this.list(table, { ...query, limit: Number.MAX_SAFE_INTEGER })).length;
  }

  async records(query: RecordQuery): Promise<string[]> {
    this.assertOpen();
    const from = query.from ?? 0;
    const to = Math.min(query.to ?? Number.MAX_SAFE_INTEGER, this.lines.length - 1);
    const step = query.order === "desc" ? -1 : 1;
    const out: string[] = [];
    for (let seq = step > 0 ? from : to; seq >= from && seq <= to && out.length < query.limit; seq += step) {
      if (matchesRecord(query, this.lines[seq]!)) out.push(this.lines[seq]!);
    }
    return out;
  }

  async head(): Promise<LedgerState> {
    this.assertOpen();
    return { ...this.chain, events: { ...this.events } };
  }

  async changed(signal: AbortSignal): Promise<void> {
    this.assertOpen();
    return this.signal.wait(signal);
  }

  async ready(): Promise<void> {
    this.assertOpen();
  }

  async scrub(): Promise<void> {}

  async close(): Promise<void> {
    await this.commits.close();
    this.closed = true;
    this.signal.notify();
  }

  private async commit(batch: readonly PendingUnit[]): Promise<undefined> {
    this.apply(batch);
  }

  private apply(units: readonly PendingUnit[]): void {
    this.assertOpen();
    const batch = new UnitBatch(this.chain, (table, key) => this.tables.get(table)!.get(key));
    for (const pending of units) batch.run(pending);
    for (const { table, key, doc } of batch.changes) {
      const docs = this.tables.get(table)!;
      if (doc === undefined) docs.delete(key);
      else docs.set(key, doc);
    }
    for (const record of batch.records) this.events[record.event] = (this.events[record.event] ?? 0) + 1;
    this.lines.push(...batch.lines);
    this.chain = batch.head;
    if (!batch.isEmpty) this.signal.notify();
  }

  private assertOpen(): void {
    if (this.closed) throw new SvcError("unavailable", "the store is closed");
  }
}
