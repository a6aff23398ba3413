/**
 * Checks the numbering within runs compactly: 36 bytes per run. A run is identified by 96 bits of a hash with a fresh
 * key for each check, so no writer can make two runs collide.
 */
import { randomFillSync } from "node:crypto";

const LANES = 3;
const FIRST_SLOTS = 1_024;

/** Key for hashing run ids, shared by all parts of one check. */
export type RunSeed = Uint32Array;

export function newRunSeed(): RunSeed {
  return randomFillSync(new Uint32Array(2 * LANES)).map((word) => word | 1);
}

/** The runs of one chunk of the ledger, in order of appearance. */
export interface RunSpans {
  readonly count: number;
  /** Three words per run. */
  readonly keys: Uint32Array;
  /** Ledger position of the run's first record in the chunk. */
  readonly at: Float64Array;
  /** The run's first and last number in the chunk. */
  readonly first: Float64Array;
  readonly last: Float64Array;
}

export class RunTable {
  private readonly seed: RunSeed;
  private readonly key = new Uint32Array(LANES);
  private slots = new Int32Array(FIRST_SLOTS);
  private keys = new Uint32Array(FIRST_SLOTS * LANES);
  private at = new Float64Array(FIRST_SLOTS);
  private first = new Float64Array(FIRST_SLOTS);
  private last = new Float64Array(FIRST_SLOTS);
  count = 0;

  constructor(seed: RunSeed) {
    this.seed = seed;
  }

  clear(): void {
    this.slots.fill(0);
    this.count = 0;
  }

  /**
   * Counts a record of the run with this id. If another number was expected, returns that one and counts nothing. A run
   * that is new to this table can begin at any number.
   */
  countRecord(bytes: DataView, from: number, to: number, run_seq: number, seq: number): number | undefined {
    this.hashId(bytes, from, to);
    const { key } = this;
    const run = this.find(key[0]!, key[1]!, key[2]!);
    if (run === this.count) {
      this.add(key[0]!, key[1]!, key[2]!, seq, run_seq, run_seq);
      return undefined;
    }
    const due = this.last[run]! + 1;
    if (due !== run_seq) return due;
    this.last[run] = run_seq;
    return undefined;
  }

  /** Merges a later chunk. Returns the earliest record with an unexpected number. */
  join(later: RunSpans): { seq: number; run_seq: number; due: number } | undefined {
    let earliest: { seq: number; run_seq: number; due: number } | undefined;
    for (let i = 0; i < later.count; i++) {
      const [a, b, c] = [later.keys[3 * i]!, later.keys[3 * i + 1]!, later.keys[3 * i + 2]!];
      const run = this.find(a, b, c);
      const due = run === this.count ? 0 : this.last[run]! + 1;
      if (run === this.count) this.add(a, b, c, later.at[i]!, later.first[i]!, later.last[i]!);
      else this.last[run] = later.last[i]!;
      if (later.first[i] === due || (earliest !== undefined && earliest.seq < later.at[i]!)) continue;
      earliest = { seq: later.at[i]!, run_seq: later.first[i]!, due };
    }
    return earliest;
  }

  /** A copy of the table's content. */
  spans(): RunSpans {
    const { count } = this;
    return {
      count,
      keys: this.keys.slice(0, LANES * count),
      at: this.at.slice(0, count),
      first: this.first.slice(0, count),
      last: this.last.slice(0, count),
    };
  }

  private hashId(bytes: DataView, from: number, to: number): void {
    const { seed, key } = this;
    const [ma = 0, mb = 0, mc = 0] = seed.subarray(LANES);
    // Include the length, because the last word is padded with zeros.
    let a = seed[0]! ^ (to - from);
    let b = seed[1]!;
    let c = seed[2]!;
    for (let p = from; p < to; p += 4) {
      const word = p + 4 <= to ? bytes.getInt32(p, true) : lastWord(bytes, p, to);
      a = Math.imul(a ^ word, ma);
      b = Math.imul(b ^ word, mb);
      c = Math.imul(c ^ word, mc);
      // Fold high bits down, or equal patterns would cancel out under any key.
      a ^= a >>> 15;
      b ^= b >>> 13;
      c ^= c >>> 16;
    }
    key[0] = a;
    key[1] = b;
    key[2] = c;
  }

  /** Index of the run, or `count` if it is not in the table. */
  private find(a: number, b: number, c: number): number {
    const { slots, keys } = this;
    const mask = slots.length - 1;
    for (let slot = a & mask; ; slot = (slot + 1) & mask) {
      const run = slots[slot]! - 1;
      if (run < 0) return this.count;
      const k = LANES * run;
      if (keys[k] === a >>> 0 && keys[k + 1] === b >>> 0 && keys[k + 2] === c >>> 0) return run;
    }
  }

  private add(a: number, b: number, c: number, at: number, first: number, last: number): void {
    const run = this.count++;
    if (run === this.at.length) this.grow();
    this.keys[LANES * run] = a;
    this.keys[LANES * run + 1] = b;
    this.keys[LANES * run + 2] = c;
    this.at[run] = at;
    this.first[run] = first;
    this.last[run] = last;
    if (2 * this.count > this.slots.length) this.rehash(2 * this.slots.length);
    else this.place(run);
  }

  private place(run: number): void {
    const mask = this.slots.length - 1;
    let slot = this.keys[LANES * run]! & mask;
    while (this.slots[slot] !== 0) slot = (slot + 1) & mask;
    this.slots[slot] = run + 1;
  }

  private rehash(size: number): void {
    this.slots = new Int32Array(size);
    for (let run = 0; run < this.count; run++) this.place(run);
  }

  private grow(): void {
    const size = 2 * this.at.length;
    const larger = <T extends Uint32Array | Float64Array>(grown: T, old: T): T => {
      grown.set(old);
      return grown;
    };
    this.keys = larger(new Uint32Array(size * LANES), this.keys);
    this.at = larger(new Float64Array(size), this.at);
    this.first = larger(new Float64Array(size), this.first);
    this.last = larger(new Float64Array(size), this.last);
  }
}

function lastWord(bytes: DataView, from: number, to: number): number {
  let word = 0;
  for (let p = to - 1; p >= from; p--) word = (word << 8) | bytes.getUint8(p);
  return word;
}

/** Bytes of a run id, for counting outside the ledger's own bytes. */
export function idBytes(run_id: string): DataView {
  const bytes = new TextEncoder().encode(run_id);
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}
