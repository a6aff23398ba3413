/**
 * Queue of open documents by expiry time. It reads all of them once and later only new ones, so a poll costs as much as
 * the number of new and expired documents, not the number of open ones.
 */
import { allRows } from "../../govern/port/pages.ts";
import type { DocRow, StateStore } from "../../govern/port/store.ts";
import type { TableDocs } from "../../govern/port/tables.ts";

type Aging = "approvals" | "plans";

/** Overlap of two polls: servers' clocks differ, and a document is committed after its timestamp. */
const OVERLAP_MS = 10_000;
/** Interval of full reads, which find documents with a wrong clock. */
const WHOLE_MS = 600_000;

export class ExpiryQueue<N extends Aging> {
  private readonly table: N;
  private readonly open: readonly string[];
  private readonly dueAt: (doc: TableDocs[N]) => number;
  private readonly times = new Map<string, number>();
  private next_ms = Number.POSITIVE_INFINITY;
  private looked_ms = 0;
  private whole_ms = Number.NEGATIVE_INFINITY;

  constructor(table: N, open: readonly string[], dueAt: (doc: TableDocs[N]) => number) {
    this.table = table;
    this.open = open;
    this.dueAt = dueAt;
  }

  /** Adds the documents opened since the last poll and returns them. */
  async fresh(store: StateStore, now: number): Promise<TableDocs[N][]> {
    const whole = now - this.whole_ms >= WHOLE_MS;
    const rows = await openRows(
      store,
      this.table,
      this.open,
      whole ? undefined : this.looked_ms - OVERLAP_MS,
    );
    const found = rows.filter(({ key }) => !this.times.has(key));
    for (const { key, doc } of found) this.put(key, doc);
    if (whole) this.whole_ms = now;
    this.looked_ms = now;
    return found.map(({ doc }) => doc);
  }

  put(key: string, doc: TableDocs[N]): void {
    const at = this.dueAt(doc);
    this.times.set(key, at);
    this.next_ms = Math.min(this.next_ms, at);
  }

  /** Removes a document that no longer expires. */
  drop(key: string): void {
    this.times.delete(key);
  }

  /** Keys of expired documents. They are returned again until dropped or put back with a new time. */
  due(now: number): string[] {
    if (now < this.next_ms) return [];
    const found: string[] = [];
    let next_ms = Number.POSITIVE_INFINITY;
    for (const [key, at] of this.times) {
      if (at <= now) found.push(key);
      else next_ms = Math.min(next_ms, at);
    }
    // A document that could not be written this time is returned again.
    this.next_ms = found.length === 0 ? next_ms : now;
    return found;
  }
}

/** All rows in one of the states. */
export async function openRows<N extends Aging>(
  store: StateStore,
  table: N,
  tag: readonly string[],
  from?: number,
): Promise<DocRow<N>[]> {
  const found: DocRow<N>[] = [];
  for await (const row of allRows(store, table, { tag, from })) found.push(row);
  return found;
}
