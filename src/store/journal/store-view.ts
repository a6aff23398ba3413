/**
 * The in-memory view of the store: the head of the ledger, the documents changed since the checkpoint, and a bounded
 * cache of older ones. It changes by whole units in their order, whether this process or another wrote them.
 */
import type { DocKey } from "../../govern/port/store.ts";
import { TABLE_NAMES, type TableDocs, type TableName } from "../../govern/port/tables.ts";
import type { LedgerHead } from "../../ledger/record.ts";
import { UnitBatch } from "../batch.ts";
import { type CheckpointPosition, type CheckpointReader, EMPTY_CHECKPOINT } from "./checkpoint/checkpoint.ts";
import { DocCache } from "./doc-cache.ts";
import { type JournalDoc, parseSlot, type UnitBlock } from "./lines/block.ts";
import { LedgerTail } from "./lines/ledger-tail.ts";
import { type DocOverlay, OverlayStack } from "./overlay.ts";

/** In characters of JSON. Parsed documents take a few times as many bytes. */
const CACHE_CHARS = 6_000_000;

/** Up to this many documents, a loop is as fast. */
const FEW_KEYS = 4;

export class StoreView {
  base: CheckpointPosition = EMPTY_CHECKPOINT;
  head: LedgerHead = EMPTY_CHECKPOINT.head;
  events: Record<string, number> = {};
  /** Increases with every change. */
  version = 0;
  readonly overlays = new OverlayStack();
  tail = new LedgerTail();
  private readonly cache = new DocCache(CACHE_CHARS);
  /** The overlay that the checkpoint applied last. It is as correct as the checkpoint, and already in memory. */
  private recent: DocOverlay | undefined;
  /** Tables that are empty in the checkpoint. Most keys that a decision reads do not exist. */
  private readonly empty = new Set<TableName>();
  private checkpoint: CheckpointReader | undefined;

  /** Starts again from a checkpoint. */
  reset(checkpoint: CheckpointReader, base: CheckpointPosition): void {
    this.version++;
    this.checkpoint = checkpoint;
    this.base = base;
    this.head = base.head;
    this.events = { ...base.events };
    this.tail = new LedgerTail(base.head.records, base.size);
    this.overlays.clear();
    this.overlays.open(base.generation + 1);
    this.cache.clear();
    this.recent = undefined;
    this.empty.clear();
    for (const table of TABLE_NAMES) if (checkpoint.isEmpty(table)) this.empty.add(table);
  }

  /** Switches to a new connection to the same checkpoint. */
  reconnect(checkpoint: CheckpointReader): void {
    this.checkpoint = checkpoint;
  }

  /** Applies units of a journal after all earlier ones. */
  apply(generation: number, units: readonly UnitBlock[]): void {
    while (this.overlays.active.generation < generation) this.rotate();
    const { active } = this.overlays;
    if (units.length > 0) this.version++;
    for (const unit of units) {
      for (const put of unit.puts) {
        active.take(put);
        this.cache.forget(put.table, put.key);
      }
      for (const line of unit.lines) {
        this.tail.push(line);
        this.events[line.event] = (this.events[line.event] ?? 0) + 1;
      }
      active.records += unit.lines.length;
      this.head = unit.head;
    }
  }

  /** Starts the next journal for the units that follow. */
  rotate(): void {
    this.version++;
    this.overlays.open(this.overlays.active.generation + 1);
  }

  /** Drops the overlays of all journals that a checkpoint contains. */
  release(base: CheckpointPosition): void {
    // Another process may have moved the checkpoint past the data that this process has read. Wait until it has caught
    // up.
    if (base.generation <= this.base.generation || base.generation >= this.overlays.active.generation) return;
    const released = this.overlays.release(base.generation);
    for (const overlay of released) for (const table of overlay.tableNames) this.empty.delete(table);
    this.recent = released.at(-1);
    this.tail.release(base.head.records);
    this.base = base;
  }

  get<N extends TableName>(table: N, key: string): TableDocs[N] | undefined {
    const slot = this.slotOf(table, key);
    if (slot !== undefined) return slot === null ? undefined : (parseSlot(slot) as TableDocs[N]);
    if (this.empty.has(table)) return undefined;
    const cached = this.cache.get(table, key);
    if (cached !== undefined) return (cached ?? undefined) as TableDocs[N] | undefined;
    return this.keep(table, key, this.checkpoint?.get(table, key));
  }

  /** For units that read this view. */
  newBatch(): UnitBatch {
    const read = (table: TableName, key: string) => this.get(table, key);
    return new UnitBatch(this.head, read, undefined, (keys) => this.prefetch(keys));
  }

  /** Reads documents of the checkpoint into the cache, many at once. */
  private prefetch(keys: readonly DocKey[]): void {
    const wanted = new Map<TableName, string[]>();
    for (const [table, key] of keys) {
      if (this.empty.has(table) || this.cache.get(table, key) !== undefined) continue;
      if (this.slotOf(table, key) !== undefined) continue;
      const others = wanted.get(table);
      if (others === undefined) wanted.set(table, [key]);
      else others.push(key);
    }
    for (const [table, asked] of wanted) {
      if (asked.length < FEW_KEYS) continue;
      const found = this.checkpoint?.getMany(table, asked);
      for (const key of asked) this.keep(table, key, found?.get(key));
    }
  }

  private slotOf(table: TableName, key: string): JournalDoc | null | undefined {
    const slot = this.overlays.get(table, key);
    return slot === undefined ? this.recent?.get(table, key) : slot;
  }

  private keep<N extends TableName>(
    table: N,
    key: string,
    text: string | undefined,
  ): TableDocs[N] | undefined {
    const doc = text === undefined ? null : (JSON.parse(text) as TableDocs[N]);
    this.cache.set(table, key, doc, key.length + (text ?? "").length);
    return doc ?? undefined;
  }
}
