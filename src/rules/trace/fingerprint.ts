/**
 * Fingerprints of values: 53-bit keyed hashes. They are not cryptographic, and need not be: who can read them can read
 * the run's salt, too. The key makes fingerprints of two runs incomparable, and no caller can aim for a collision.
 */
import { sha256 } from "../../kernel/hash.ts";
import { LruMap } from "../../kernel/lru.ts";
import { type PausableWork, runAtOnce } from "../../kernel/pausable-work.ts";
import { FingerprintMap } from "./fingerprint-map.ts";
import { codesOf } from "./text-codes.ts";
import { WORDS_IN_SEQUENCE } from "./text-values.ts";
import type { TracedWords, TraceValues, ValueList } from "./value-list.ts";

/** Number of fingerprints between two pauses. */
const PER_PAUSE = 8_192;
/** Number of fingerprints that one call computes, so that the compiled code also fits short texts. */
const PER_CALL = 512;

export function fingerprintsOf(salt: string, found: TraceValues): FingerprintMap {
  return knownFingerprints(salt, found) ?? runAtOnce(keepingFingerprints(salt, found));
}

const knownFingerprints = (salt: string, found: TraceValues): FingerprintMap | undefined =>
  found.fingerprints.find((known) => known.salt === salt)?.map;

function* keepingFingerprints(salt: string, found: TraceValues): PausableWork<FingerprintMap> {
  const map = yield* computingFingerprints(salt, found);
  found.fingerprints.push({ salt, map });
  return map;
}

/** Computes the fingerprints of a large document while yielding to other work. */
export function* precomputingFingerprints(salt: string, found: TraceValues): PausableWork<void> {
  if (knownFingerprints(salt, found) === undefined) yield* keepingFingerprints(salt, found);
}

function* computingFingerprints(salt: string, found: TraceValues): PausableWork<FingerprintMap> {
  const hasher = new KeyedHasher(salt);
  const { values, sequences } = found;
  const known = new FingerprintMap(
    sequences.reduce((sum, words) => sum + countSequences(words), values.length),
    values.sources,
  );
  for (let from = 0; from < values.length; from += PER_PAUSE) {
    const to = Math.min(values.length, from + PER_PAUSE);
    for (let start = from; start < to; start += PER_CALL)
      addValues(known, hasher, values, start, Math.min(to, start + PER_CALL));
    yield;
  }
  for (const words of sequences) {
    const { source } = words;
    const count = countSequences(words);
    for (let from = 0; from < count; from += PER_PAUSE) {
      const to = Math.min(count, from + PER_PAUSE);
      const part = { codes: codesOf(words.text), bounds: words.bounds, source };
      for (let start = from; start < to; start += PER_CALL)
        addSequences(known, hasher, part, start, Math.min(to, start + PER_CALL));
      yield;
    }
  }
  return known;
}

const countSequences = ({ bounds }: TracedWords): number => bounds.length / 2 - WORDS_IN_SEQUENCE + 1;

function addValues(
  known: FingerprintMap,
  hasher: KeyedHasher,
  { codes, bounds, source_ids }: ValueList,
  from: number,
  to: number,
): void {
  hasher.readParts(codes, bounds, from, to - from);
  const fingerprints = hasher.combine(1, to - from);
  for (let n = from; n < to; n++) known.add(fingerprints[n - from]!, source_ids[n]!);
}

function addSequences(
  known: FingerprintMap,
  hasher: KeyedHasher,
  { codes, bounds, source }: { codes: Uint16Array; bounds: Int32Array; source: number },
  from: number,
  to: number,
): void {
  hasher.readParts(codes, bounds, from, to - from + WORDS_IN_SEQUENCE - 1);
  const fingerprints = hasher.combine(WORDS_IN_SEQUENCE, to - from);
  for (let n = 0; n < to - from; n++) known.add(fingerprints[n]!, source);
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

/** Of the parts at hand, two for each. */
const lanes = new Int32Array(2 * (PER_CALL + WORDS_IN_SEQUENCE));
const combined = new Float64Array(PER_CALL);

/** Two lanes of 32 bits with different keys and multipliers. */
class KeyedHasher {
  private readonly key_a: number;
  private readonly key_b: number;

  constructor(salt: string) {
    [this.key_a, this.key_b] = keysOf(salt);
  }

  /** Computes the two lanes of each part of a text. */
  readParts(codes: Uint16Array, bounds: Int32Array, from: number, count: number): void {
    const { key_a, key_b } = this;
    for (let n = 0; n < count; n++) {
      const start = bounds[2 * (from + n)]!;
      const end = bounds[2 * (from + n) + 1]!;
      let a = key_a;
      let b = key_b;
      for (let i = start; i < end; i++) {
        const unit = codes[i]!;
        a = Math.imul(a ^ unit, 0x9e3779b1);
        a ^= a >>> 15;
        b = Math.imul(b ^ unit, 0x85ebca77);
        b ^= b >>> 13;
      }
      lanes[2 * n] = mixed(a ^ (end - start));
      lanes[2 * n + 1] = mixed(b);
    }
  }

  /** Numbers of 53 bits, each of as many consecutive parts. Valid until the next call. */
  combine(parts: number, count: number): Float64Array {
    for (let n = 0; n < count; n++) {
      let a = this.key_b;
      let b = this.key_a;
      const end = 2 * (n + parts);
      for (let i = 2 * n; i < end; i += 2) {
        a = Math.imul(a ^ lanes[i]!, 0x9e3779b1);
        a ^= a >>> 15;
        b = Math.imul(b ^ lanes[i + 1]!, 0x85ebca77);
        b ^= b >>> 13;
      }
      combined[n] = (mixed(a) >>> 0) * 0x200000 + (mixed(b) & 0x1fffff);
    }
    return combined;
  }
}

function mixed(word: number): number {
  let h = word;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}
