/**
 * Fingerprints of values: 53-bit keyed hashes. They are not cryptographic, and need not be: who can read them can read
 * the run's salt, too. The key makes fingerprints of two runs incomparable, and no caller can aim for a collision.
 */
import { sha256 } from "../../kernel/hash.ts";
import { LruMap } from "../../kernel/lru.ts";
import { type PausableWork, runAtOnce } from "../../kernel/pausable-work.ts";
import { type TraceKind, type TraceValues, WORDS_IN_SEQUENCE } from "./find-values.ts";

export interface TraceSource {
  kind: TraceKind;
  path: string;
}

/** Fingerprints in their order, each with the first position of its value. A map would box every number. */
export class FingerprintMap {
  private readonly fingerprints: number[] = [];
  private readonly sources: TraceSource[] = [];
  /** Positions in the lists, plus one; 0 for a free slot. */
  private readonly slots: Int32Array;

  /** `max` is the most fingerprints that will be added. */
  constructor(max = 0) {
    this.slots = new Int32Array(2 ** Math.ceil(Math.log2(2 * max + 2)));
  }

  get size(): number {
    return this.fingerprints.length;
  }

  keys(): readonly number[] {
    return this.fingerprints;
  }

  has(fingerprint: number): boolean {
    return this.slots[this.slotOf(fingerprint)] !== 0;
  }

  /** Keeps the first source. */
  add(fingerprint: number, source: TraceSource): void {
    const slot = this.slotOf(fingerprint);
    if (this.slots[slot] !== 0) return;
    this.sources.push(source);
    this.slots[slot] = this.fingerprints.push(fingerprint);
  }

  *[Symbol.iterator](): IterableIterator<readonly [number, TraceSource]> {
    for (const [i, fingerprint] of this.fingerprints.entries()) yield [fingerprint, this.sources[i]!];
  }

  /** The slot of the fingerprint, or the free slot where it belongs. */
  private slotOf(fingerprint: number): number {
    const last = this.slots.length - 1;
    let slot = Math.trunc(fingerprint / 0x200000) & last;
    for (;;) {
      const position = this.slots[slot]!;
      if (position === 0 || this.fingerprints[position - 1] === fingerprint) return slot;
      slot = (slot + 1) & last;
    }
  }
}

/** Number of fingerprints between two pauses. */
const PER_PAUSE = 8_192;

export function fingerprintsOf(salt: string, found: TraceValues): FingerprintMap {
  return known_fingerprints.get(found)?.get(salt) ?? runAtOnce(keepingFingerprints(salt, found));
}

/** An entry lives as long as the values of its document. */
const known_fingerprints = new WeakMap<TraceValues, Map<string, FingerprintMap>>();

function* keepingFingerprints(salt: string, found: TraceValues): PausableWork<FingerprintMap> {
  const fingerprints = yield* computingFingerprints(salt, found);
  const known = known_fingerprints.get(found) ?? new Map<string, FingerprintMap>();
  known_fingerprints.set(found, known.set(salt, fingerprints));
  return fingerprints;
}

/** Computes the fingerprints of a large document while yielding to other work. */
export function* precomputingFingerprints(salt: string, found: TraceValues): PausableWork<void> {
  if (known_fingerprints.get(found)?.has(salt) !== true) yield* keepingFingerprints(salt, found);
}

function* computingFingerprints(salt: string, found: TraceValues): PausableWork<FingerprintMap> {
  const hasher = new KeyedHasher(salt);
  const sequences = found.sequences.reduce((sum, { bounds }) => sum + bounds.length / 2, 0);
  const known = new FingerprintMap(found.values.length + sequences);
  const lanes_of_one = new Int32Array(2);
  for (const value of found.values) {
    hasher.writeLanes(value.text, 0, value.text.length, lanes_of_one, 0);
    known.add(hasher.hash(lanes_of_one, 0, 2), value);
  }
  for (const { text, bounds, path } of found.sequences) {
    const source: TraceSource = { kind: "words", path };
    const lanes = new Int32Array(bounds.length);
    for (let n = 0; n < bounds.length; n += 2) hasher.writeLanes(text, bounds[n]!, bounds[n + 1]!, lanes, n);
    const last = bounds.length / 2 - WORDS_IN_SEQUENCE;
    for (let from = 0; from <= last; from += PER_PAUSE) {
      addSequences(known, hasher, { lanes, source, from, to: Math.min(last, from + PER_PAUSE - 1) });
      yield;
    }
  }
  return known;
}

interface SequencePart {
  lanes: Int32Array;
  source: TraceSource;
  from: number;
  to: number;
}

function addSequences(known: FingerprintMap, hasher: KeyedHasher, { lanes, source, from, to }: SequencePart) {
  for (let start = from; start <= to; start++)
    known.add(hasher.hash(lanes, 2 * start, 2 * (start + WORDS_IN_SEQUENCE)), source);
}

/** Keys of the salts in use, since a hash of each would cost more than the fingerprints of a small call. */
const known_keys = new LruMap<string, readonly [number, number]>(1_000);

function keysOf(salt: string): readonly [number, number] {
  const known = known_keys.get(salt);
  if (known !== undefined) return known;
  const key = sha256(`trace\0${salt}`);
  const keys = [key.readInt32LE(0), key.readInt32LE(4)] as const;
  known_keys.set(salt, keys);
  return keys;
}

/** Two lanes of 32 bits with different keys and multipliers. */
class KeyedHasher {
  private readonly key_a: number;
  private readonly key_b: number;

  constructor(salt: string) {
    [this.key_a, this.key_b] = keysOf(salt);
  }

  /** Writes the two lanes of a part of the text. */
  writeLanes(text: string, from: number, to: number, lanes: Int32Array, at: number): void {
    let a = this.key_a;
    let b = this.key_b;
    for (let i = from; i < to; i++) {
      const unit = text.charCodeAt(i);
      a = Math.imul(a ^ unit, 0x9e3779b1);
      a ^= a >>> 15;
      b = Math.imul(b ^ unit, 0x85ebca77);
      b ^= b >>> 13;
    }
    lanes[at] = mixed(a ^ (to - from));
    lanes[at + 1] = mixed(b);
  }

  /** Combines the lanes of consecutive words into one number of 53 bits. */
  hash(lanes: Int32Array, from: number, to: number): number {
    let a = this.key_b;
    let b = this.key_a;
    for (let i = from; i < to; i += 2) {
      a = Math.imul(a ^ lanes[i]!, 0x9e3779b1);
      a ^= a >>> 15;
      b = Math.imul(b ^ lanes[i + 1]!, 0x85ebca77);
      b ^= b >>> 13;
    }
    return (mixed(a) >>> 0) * 0x200000 + (mixed(b) & 0x1fffff);
  }
}

function mixed(word: number): number {
  let h = word;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}
