/**
 * Documents that were changed since the checkpoint, one overlay for each journal. The newest overlay
 * that knows a document is right about it; the checkpoint is right about all others.
 */
import { hasTenants, type TableName, tenantOfDoc } from "../../port/tables.ts";
import { changed, docOf, type Put, type Slot } from "./block.ts";

export class Overlay {
  readonly generation: number;
  private readonly tables = new Map<TableName, Map<string, Slot | null>>();
  /** For the tables that have tenants, the keys of each; made when a tenant is first asked for. */
  private owned: Map<TableName, Map<string, Set<string>>> | undefined;
  private readonly deleted = new Map<TableName, Set<string>>();
  /** How many changes it has taken in, repeated ones included: what its journal costs to replay. */
  changes = 0;
  records = 0;

  constructor(generation: number) {
    this.generation = generation;
  }

  /** Undefined where it knows nothing, null where the document was deleted. */
  get(table: TableName, key: string): Slot | null | undefined {
    return this.tables.get(table)?.get(key);
  }

  take(put: Put): void {
    let docs = this.tables.get(put.table);
    if (docs === undefined) {
      docs = new Map();
      this.tables.set(put.table, docs);
    }
    const { table, key } = put;
    const slot = put.slot !== null && !("doc" in put.slot) ? changed(docs.get(key), put.slot) : put.slot;
    docs.set(key, slot);
    if (hasTenants(table)) this.own(table, key, slot);
    this.changes++;
  }

  /** Every key that is or was the tenant's; what stands there now may be gone, or another's. */
  keysOf(table: TableName, tenant: string): Iterable<string> {
    if (this.owned === undefined) {
      this.owned = new Map();
      for (const [name, key, slot] of this) if (hasTenants(name)) this.own(name, key, slot);
    }
    return this.owned.get(table)?.get(tenant) ?? [];
  }

  /** Every key that was deleted, whatever stands there now. */
  deletedKeys(table: TableName): Iterable<string> {
    return this.deleted.get(table) ?? [];
  }

  private own(table: TableName, key: string, slot: Slot | null): void {
    if (slot === null) addTo(this.deleted, table, key);
    if (slot === null || this.owned === undefined) return;
    const tenant = tenantOfDoc(table, docOf(slot));
    if (tenant === null) return;
    const tenants = this.owned.get(table) ?? new Map<string, Set<string>>();
    this.owned.set(table, tenants);
    addTo(tenants, tenant, key);
  }

  get tableNames(): Iterable<TableName> {
    return this.tables.keys();
  }

  table(name: TableName): ReadonlyMap<string, Slot | null> | undefined {
    return this.tables.get(name);
  }

  *[Symbol.iterator](): IterableIterator<[TableName, string, Slot | null]> {
    for (const [table, docs] of this.tables) {
      for (const [key, slot] of docs) yield [table, key, slot];
    }
  }
}

function addTo<K>(sets: Map<K, Set<string>>, name: K, key: string): void {
  const keys = sets.get(name);
  if (keys === undefined) sets.set(name, new Set([key]));
  else keys.add(key);
}

/** All overlays seen as one, newest first. */
export class Overlays {
  private stack: Overlay[] = [];

  get active(): Overlay {
    return this.stack[this.stack.length - 1]!;
  }

  /** Those whose journal is closed, oldest first: what the next checkpoints take in. */
  get frozen(): readonly Overlay[] {
    return this.stack.slice(0, -1);
  }

  open(generation: number): void {
    this.stack.push(new Overlay(generation));
  }

  clear(): void {
    this.stack = [];
  }

  /** Lets go of what a checkpoint has taken in, and answers it. */
  release(upTo: number): Overlay[] {
    const done = this.stack.filter(({ generation }) => generation <= upTo);
    this.stack = this.stack.filter(({ generation }) => generation > upTo);
    return done;
  }

  get(table: TableName, key: string): Slot | null | undefined {
    for (let i = this.stack.length - 1; i >= 0; i--) {
      const slot = this.stack[i]!.get(table, key);
      if (slot !== undefined) return slot;
    }
    return undefined;
  }

  /** Every document of a table that any overlay knows, each once, as the newest has it. */
  *table(name: TableName): IterableIterator<[string, Slot | null]> {
    for (let i = this.stack.length - 1; i >= 0; i--) {
      const docs = this.stack[i]!.table(name);
      if (docs === undefined) continue;
      for (const [key, slot] of docs) {
        if (!this.isKnownAbove(i, name, key)) yield [key, slot];
      }
    }
  }

  /** The same of one tenant, where the table has tenants. */
  *tableOf(name: TableName, tenant: string): IterableIterator<[string, Slot]> {
    for (let i = this.stack.length - 1; i >= 0; i--) {
      for (const key of this.stack[i]!.keysOf(name, tenant)) {
        const slot = this.stack[i]!.get(name, key);
        if (slot && tenantOfDoc(name, docOf(slot)) === tenant && !this.isKnownAbove(i, name, key))
          yield [key, slot];
      }
    }
  }

  /** The keys under which the checkpoint may have a document of the tenant that is not so any more. */
  *replacedOf(name: TableName, tenant: string): IterableIterator<string> {
    for (const overlay of this.stack) {
      yield* overlay.keysOf(name, tenant);
      yield* overlay.deletedKeys(name);
    }
  }

  private isKnownAbove(level: number, table: TableName, key: string): boolean {
    for (let i = level + 1; i < this.stack.length; i++) {
      if (this.stack[i]!.get(table, key) !== undefined) return true;
    }
    return false;
  }
}
