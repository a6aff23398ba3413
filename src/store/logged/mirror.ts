/**
 * What this process knows of the store: where the ledger stands, the documents changed since the
 * checkpoint, and a bounded cache of those before it. It is changed by whole units, in their order,
 * whether this process wrote them or another.
 */
import type { Head } from "../../ledger/record.ts";
import { TABLE_NAMES, type TableName, type Tables } from "../../port/tables.ts";
import { docOf, type UnitBlock } from "./block.ts";
import { type Base, type Checkpoint, EMPTY_BASE } from "./checkpoint.ts";
import { DocCache } from "./doc-cache.ts";
import { type Overlay, Overlays } from "./overlay.ts";
import { Tail } from "./tail.ts";

/** Characters of JSON; parsed documents take a few times as many bytes. */
const CACHE_CHARS = 6_000_000;

export class Mirror {
  base: Base = EMPTY_BASE;
  head: Head = EMPTY_BASE.head;
  events: Record<string, number> = {};
  /** Moves with every change. */
  version = 0;
  readonly overlays = new Overlays();
  tail = new Tail();
  private readonly cache = new DocCache(CACHE_CHARS);
  /** The overlay that the checkpoint took in last: as right as the checkpoint, and warm. */
  private recent: Overlay | undefined;
  /** Tables of which the checkpoint has nothing: most keys that a decision asks for do not exist. */
  private readonly empty = new Set<TableName>();
  private checkpoint: Checkpoint | undefined;

  /** Starts anew from a checkpoint. */
  reset(checkpoint: Checkpoint, base: Base): void {
    this.version++;
    this.checkpoint = checkpoint;
    this.base = base;
    this.head = base.head;
    this.events = { ...base.events };
    this.tail = new Tail(base.head.records, base.size);
    this.overlays.clear();
    this.overlays.open(base.generation + 1);
    this.cache.clear();
    this.recent = undefined;
    this.empty.clear();
    for (const table of TABLE_NAMES) if (checkpoint.isEmpty(table)) this.empty.add(table);
  }

  /** The same checkpoint through a new connection. */
  reconnect(checkpoint: Checkpoint): void {
    this.checkpoint = checkpoint;
  }

  /** Units of a journal, behind all that were applied before. */
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

  /** From here on units belong to the next journal. */
  rotate(): void {
    this.version++;
    this.overlays.open(this.overlays.active.generation + 1);
  }

  /** A checkpoint has taken in journals up to its generation: what it holds need not be kept twice. */
  release(base: Base): void {
    // Others may have moved it past what this process has read; then it waits until it has.
    if (base.generation <= this.base.generation || base.generation >= this.overlays.active.generation) return;
    const released = this.overlays.release(base.generation);
    for (const overlay of released) for (const table of overlay.tableNames) this.empty.delete(table);
    this.recent = released.at(-1);
    this.tail.release(base.head.records);
    this.base = base;
  }

  get<N extends TableName>(table: N, key: string): Tables[N] | undefined {
    let slot = this.overlays.get(table, key);
    if (slot === undefined) slot = this.recent?.get(table, key);
    if (slot !== undefined) return slot === null ? undefined : (docOf(slot) as Tables[N]);
    if (this.empty.has(table)) return undefined;
    const cached = this.cache.get(table, key);
    if (cached !== undefined) return cached as Tables[N];
    const text = this.checkpoint?.get(table, key);
    if (text === undefined) return undefined;
    const doc = JSON.parse(text) as Tables[N];
    this.cache.set(table, key, doc, text.length + key.length);
    return doc;
  }
}
