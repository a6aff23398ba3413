/**
 * Documents that were changed since the checkpoint, one overlay for each journal. The newest overlay
 * that knows a document is right about it; the checkpoint is right about all others.
 */
import type { TableName } from "../../port/tables.ts";
import type { Put, Slot } from "./block.ts";

export class Overlay {
  readonly generation: number;
  private readonly tables = new Map<TableName, Map<string, Slot | null>>();
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
    docs.set(put.key, put.slot);
    this.changes++;
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

  private isKnownAbove(level: number, table: TableName, key: string): boolean {
    for (let i = level + 1; i < this.stack.length; i++) {
      if (this.stack[i]!.get(table, key) !== undefined) return true;
    }
    return false;
  }
}
