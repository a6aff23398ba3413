/**
 * Which open documents time will change, and when. They are read once, and from then on only what is new: a look costs
 * what was opened since the last one and what is due, however many are open.
 */
import { allRows } from "../../port/pages.ts";
import type { DocRow, Store } from "../../port/store.ts";
import type { Tables } from "../../port/tables.ts";

type Aging = "approvals" | "plans";

/** The clocks of several servers differ, and a document is committed a moment after the time that it carries. */
const OVERLAP_MS = 10_000;
/** However wrong a clock was, everything that is open is read this often. */
const WHOLE_MS = 600_000;

export class Due<N extends Aging> {
  private readonly table: N;
  private readonly open: readonly string[];
  private readonly dueAt: (doc: Tables[N]) => number;
  private readonly times = new Map<string, number>();
  private next_ms = Number.POSITIVE_INFINITY;
  private looked_ms = 0;
  private whole_ms = Number.NEGATIVE_INFINITY;

  constructor(table: N, open: readonly string[], dueAt: (doc: Tables[N]) => number) {
    this.table = table;
    this.open = open;
    this.dueAt = dueAt;
  }

  /** Takes in what was opened since the last look, and answers it. */
  async fresh(store: Store, now: number): Promise<Tables[N][]> {
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

  put(key: string, doc: Tables[N]): void {
    const at = this.dueAt(doc);
    this.times.set(key, at);
    this.next_ms = Math.min(this.next_ms, at);
  }

  /** Time changes it no more. */
  drop(key: string): void {
    this.times.delete(key);
  }

  /** Those whose time has come, until they are dropped or put in anew. */
  due(now: number): string[] {
    if (now < this.next_ms) return [];
    const found: string[] = [];
    let next_ms = Number.POSITIVE_INFINITY;
    for (const [key, at] of this.times) {
      if (at <= now) found.push(key);
      else next_ms = Math.min(next_ms, at);
    }
    // What could not be written this time is found again.
    this.next_ms = found.length === 0 ? next_ms : now;
    return found;
  }
}

/** All rows in one of the states. */
export async function openRows<N extends Aging>(
  store: Store,
  table: N,
  tag: readonly string[],
  from?: number,
): Promise<DocRow<N>[]> {
  const found: DocRow<N>[] = [];
  for await (const row of allRows(store, table, { tag, from })) found.push(row);
  return found;
}
