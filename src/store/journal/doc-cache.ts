/**
 * A cache of documents from the checkpoint. Two generations replace an exact order of use: entries not used for a whole
 * generation are dropped. Lookup and invalidation are cheap, which matters because every change of a document
 * invalidates it here.
 */
import type { TableName } from "../../govern/port/tables.ts";
import type { AnyDoc } from "./lines/block.ts";

/** Null for a document that does not exist. */
type CachedDoc = AnyDoc | null;
type Generation = Map<TableName, Map<string, CachedDoc>>;

export class DocCache {
  private young: Generation = new Map();
  private old: Generation = new Map();
  private weight = 0;
  private readonly capacity: number;

  /** In characters of JSON, for both generations together. */
  constructor(capacity: number) {
    this.capacity = capacity;
  }

  get(table: TableName, key: string): CachedDoc | undefined {
    const fresh = this.young.get(table)?.get(key);
    if (fresh !== undefined) return fresh;
    const doc = this.old.get(table)?.get(key);
    if (doc !== undefined) this.put(this.young, table, key, doc);
    return doc;
  }

  set(table: TableName, key: string, doc: CachedDoc, weight: number): void {
    // A document that would displace many others is not cached, unless every decision reads it.
    if (weight > this.capacity / 16 && table !== "halts") return;
    this.weight += weight;
    if (this.weight > this.capacity / 2) {
      this.old = this.young;
      this.young = new Map();
      this.weight = weight;
    }
    this.put(this.young, table, key, doc);
  }

  forget(table: TableName, key: string): void {
    this.young.get(table)?.delete(key);
    this.old.get(table)?.delete(key);
  }

  clear(): void {
    this.young = new Map();
    this.old = new Map();
    this.weight = 0;
  }

  private put(generation: Generation, table: TableName, key: string, doc: CachedDoc): void {
    let docs = generation.get(table);
    if (docs === undefined) {
      docs = new Map();
      generation.set(table, docs);
    }
    docs.set(key, doc);
  }
}
