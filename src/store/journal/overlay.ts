/**
 * Documents changed since the checkpoint, one overlay per journal. The newest overlay with a document has its current
 * version; the checkpoint has all others.
 */
import { hasTenants, type TableName, tenantOfDoc } from "../../govern/port/tables.ts";
import { applyMemberChange, type JournalDoc, type JournalPut, parseSlot } from "./lines/block.ts";

export class DocOverlay {
  readonly generation: number;
  private readonly tables = new Map<TableName, Map<string, JournalDoc | null>>();
  /** Keys per tenant, for tables with tenants. Built on the first query for a tenant. */
  private owned: Map<TableName, Map<string, Set<string>>> | undefined;
  private readonly deleted = new Map<TableName, Set<string>>();
  /** The number of changes, including repeated ones: the cost of a replay. */
  changes = 0;
  records = 0;

  constructor(generation: number) {
    this.generation = generation;
  }

  /** Returns undefined for an unknown document, and null for a deleted one. */
  get(table: TableName, key: string): JournalDoc | null | undefined {
    return this.tables.get(table)?.get(key);
  }

  take(put: JournalPut): void {
    let docs = this.tables.get(put.table);
    if (docs === undefined) {
      docs = new Map();
      this.tables.set(put.table, docs);
    }
    const { table, key } = put;
    const slot =
      put.slot !== null && !("doc" in put.slot) ? applyMemberChange(docs.get(key), put.slot) : put.slot;
    docs.set(key, slot);
    if (hasTenants(table)) this.own(table, key, slot);
    this.changes++;
  }

  /** Every key that belongs or belonged to the tenant. Its document may be deleted now, or another tenant's. */
  keysOf(table: TableName, tenant: string): Iterable<string> {
    if (this.owned === undefined) {
      this.owned = new Map();
      for (const [name, key, slot] of this) if (hasTenants(name)) this.own(name, key, slot);
    }
    return this.owned.get(table)?.get(tenant) ?? [];
  }

  /** Every key that was deleted, even if it exists again. */
  deletedKeys(table: TableName): Iterable<string> {
    return this.deleted.get(table) ?? [];
  }

  private own(table: TableName, key: string, slot: JournalDoc | null): void {
    if (slot === null) addTo(this.deleted, table, key);
    if (slot === null || this.owned === undefined) return;
    const tenant = tenantOfDoc(table, parseSlot(slot));
    if (tenant === null) return;
    const tenants = this.owned.get(table) ?? new Map<string, Set<string>>();
    this.owned.set(table, tenants);
    addTo(tenants, tenant, key);
  }

  get tableNames(): Iterable<TableName> {
    return this.tables.keys();
  }

  table(name: TableName): ReadonlyMap<string, JournalDoc | null> | undefined {
    return this.tables.get(name);
  }

  *[Symbol.iterator](): IterableIterator<[TableName, string, JournalDoc | null]> {
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

/** All overlays as one view, newest first. */
export class OverlayStack {
  private stack: DocOverlay[] = [];

  get active(): DocOverlay {
    return this.stack[this.stack.length - 1]!;
  }

  /** The overlays of closed journals, oldest first, which the next checkpoints apply. */
  get frozen(): readonly DocOverlay[] {
    return this.stack.slice(0, -1);
  }

  open(generation: number): void {
    this.stack.push(new DocOverlay(generation));
  }

  clear(): void {
    this.stack = [];
  }

  /** Removes and returns the overlays that a checkpoint has applied. */
  release(upTo: number): DocOverlay[] {
    const done = this.stack.filter(({ generation }) => generation <= upTo);
    this.stack = this.stack.filter(({ generation }) => generation > upTo);
    return done;
  }

  get(table: TableName, key: string): JournalDoc | null | undefined {
    for (let i = this.stack.length - 1; i >= 0; i--) {
      const slot = this.stack[i]!.get(table, key);
      if (slot !== undefined) return slot;
    }
    return undefined;
  }

  /** Number of documents of a table in all overlays. */
  sizeOf(name: TableName): number {
    return this.stack.reduce((sum, overlay) => sum + (overlay.table(name)?.size ?? 0), 0);
  }

  /** Every document of a table in any overlay, each once, in its newest version. */
  *table(name: TableName): IterableIterator<[string, JournalDoc | null]> {
    for (let i = this.stack.length - 1; i >= 0; i--) {
      const docs = this.stack[i]!.table(name);
      if (docs === undefined) continue;
      for (const [key, slot] of docs) {
        if (!this.isKnownAbove(i, name, key)) yield [key, slot];
      }
    }
  }

  /** Every document of one tenant in any overlay, for tables with tenants. */
  *tableOf(name: TableName, tenant: string): IterableIterator<[string, JournalDoc]> {
    for (let i = this.stack.length - 1; i >= 0; i--) {
      for (const key of this.stack[i]!.keysOf(name, tenant)) {
        const slot = this.stack[i]!.get(name, key);
        if (slot && tenantOfDoc(name, parseSlot(slot)) === tenant && !this.isKnownAbove(i, name, key))
          yield [key, slot];
      }
    }
  }

  /** Keys at which the checkpoint may have an outdated document of the tenant. */
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
