/**
 * A cache of documents and versions as this process last read or wrote them, which saves fetches before the head lock.
 * The batch checks the versions again under the lock, as for fetched documents. If they were outdated, because other
 * processes work on the same runs, the batch costs more. The cache then pauses, longer each time.
 */
import type { DocKey } from "../../govern/port/store.ts";
import type { TableName } from "../../govern/port/tables.ts";
import type { UnitBatch } from "../batch.ts";
import type { FetchedDocs, VersionedDoc } from "./prefetch.ts";

/** Small documents that every call of a run reads again. */
const CACHED_TABLES: ReadonlySet<TableName> = new Set(["runs", "run_tools", "approval_slots", "halts"]);
/** Entries per table. The oldest goes first. */
const MAX_CACHED_DOCS = 8_192;
/** In batches. */
const SHORTEST_PAUSE = 8;
const LONGEST_PAUSE = 1_024;

export class DocVersionCache {
  private readonly tables = new Map<TableName, Map<string, VersionedDoc>>();
  private pause = 0;
  private next_pause = SHORTEST_PAUSE;

  /** Adds the cached documents to `facts`, and returns the keys without a cache entry. */
  lend(keys: readonly DocKey[], facts: FetchedDocs): readonly DocKey[] {
    if (this.pause > 0) return keys;
    return keys.filter(([table, key]) => {
      const known = this.tables.get(table)?.get(key);
      if (known !== undefined) facts.lend([table, key], known);
      return known === undefined;
    });
  }

  /** Caches the documents that a batch wrote, under its transaction id, and those that it read and did not change. */
  learn(facts: FetchedDocs, { changes }: UnitBatch, xid: string): void {
    if (this.pause > 0) this.pause--;
    else if (this.next_pause > SHORTEST_PAUSE) this.next_pause--;
    facts.keys.forEach(([table, key], i) => {
      if (CACHED_TABLES.has(table))
        this.keep(table, key, { fact: facts.fact(table, key), version: facts.versions[i] });
    });
    const version = String(BigInt.asUintN(32, BigInt(xid)));
    for (const { table, key, doc } of changes) {
      if (!CACHED_TABLES.has(table)) continue;
      const left = doc === undefined ? {} : { fact: { json: "", doc }, version };
      this.keep(table, key, left);
    }
  }

  /** Drops documents that proved outdated. */
  unlearn(keys: readonly DocKey[]): void {
    let lent = false;
    for (const [table, key] of keys) lent = (this.tables.get(table)?.delete(key) ?? false) || lent;
    if (!lent || this.pause > 0) return;
    this.pause = this.next_pause;
    this.next_pause = Math.min(2 * this.next_pause, LONGEST_PAUSE);
  }

  forget(): void {
    this.tables.clear();
  }

  private keep(table: TableName, key: string, known: VersionedDoc): void {
    let docs = this.tables.get(table);
    if (docs === undefined) {
      docs = new Map();
      this.tables.set(table, docs);
    }
    docs.set(key, known);
    if (docs.size > MAX_CACHED_DOCS) docs.delete(docs.keys().next().value!);
  }
}
