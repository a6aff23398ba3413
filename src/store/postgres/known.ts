/**
 * Documents as this process last saw or left them, with their versions. A batch that is decided ahead takes them instead of
 * fetching; whether they are still so is looked at under the head, as for whatever it is decided on. Where they were not,
 * because others work on the same runs, it is the dearer way: then this makes a pause, a longer one each time.
 */
import type { Key } from "../../port/store.ts";
import type { TableName } from "../../port/tables.ts";
import type { Batch } from "../batch.ts";
import type { FetchedDocs, Versioned } from "./facts.ts";

/** What every call of a run reads again, and none of it large. */
const KEPT: ReadonlySet<TableName> = new Set(["runs", "run_tools", "approval_slots", "halts"]);
/** Of each table; the oldest goes first. */
const MOST = 8_192;
/** In batches. */
const SHORTEST_PAUSE = 8;
const LONGEST_PAUSE = 1_024;

export class KnownDocs {
  private readonly tables = new Map<TableName, Map<string, Versioned>>();
  private pause = 0;
  private next_pause = SHORTEST_PAUSE;

  /** Puts what is known of these documents among the facts, and answers which are not known. */
  lend(keys: readonly Key[], facts: FetchedDocs): readonly Key[] {
    if (this.pause > 0) return keys;
    return keys.filter(([table, key]) => {
      const known = this.tables.get(table)?.get(key);
      if (known !== undefined) facts.lend([table, key], known);
      return known === undefined;
    });
  }

  /** What a batch has left, under its transaction, and what it was decided on and left as it was. */
  learn(facts: FetchedDocs, { changes }: Batch, xid: string): void {
    if (this.pause > 0) this.pause--;
    else if (this.next_pause > SHORTEST_PAUSE) this.next_pause--;
    facts.keys.forEach(([table, key], i) => {
      if (KEPT.has(table))
        this.keep(table, key, { fact: facts.fact(table, key), version: facts.versions[i] });
    });
    const version = String(BigInt.asUintN(32, BigInt(xid)));
    for (const { table, key, doc } of changes) {
      if (!KEPT.has(table)) continue;
      const left = doc === undefined ? {} : { fact: { json: "", doc }, version };
      this.keep(table, key, left);
    }
  }

  /** These were not what they were thought to be. */
  unlearn(keys: readonly Key[]): void {
    let lent = false;
    for (const [table, key] of keys) lent = (this.tables.get(table)?.delete(key) ?? false) || lent;
    if (!lent || this.pause > 0) return;
    this.pause = this.next_pause;
    this.next_pause = Math.min(2 * this.next_pause, LONGEST_PAUSE);
  }

  forget(): void {
    this.tables.clear();
  }

  private keep(table: TableName, key: string, known: Versioned): void {
    let docs = this.tables.get(table);
    if (docs === undefined) {
      docs = new Map();
      this.tables.set(table, docs);
    }
    docs.set(key, known);
    if (docs.size > MOST) docs.delete(docs.keys().next().value!);
  }
}
