/**
 * FingerprintMap of values: 53-bit keyed hashes. They are not cryptographic, and need not be: who can read them can read
 * the run's salt, too. The key makes fingerprints of two runs incomparable, and no caller can aim for a collision.
 */
import { sha256 } from "../../kernel/hash.ts";
import { type PausableWork, runAtOnce } from "../../kernel/pausable-work.ts";
import { type TraceKind, type TraceValues, WORDS_IN_SEQUENCE } from "./find-values.ts";

export interface TraceSource {
  kind: TraceKind;
  path: string;
}

/** FingerprintMap with the first position of their value. */
export type FingerprintMap = ReadonlyMap<number, TraceSource>;

/** Number of fingerprints between two pauses. */
const PER_PAUSE = 8_192;

export function fingerprintsOf(salt: string, found: TraceValues): FingerprintMap {
  return runAtOnce(computingFingerprints(salt, found));
}

function* computingFingerprints(salt: string, found: TraceValues): PausableWork<FingerprintMap> {
  const hasher = new KeyedHasher(salt);
  const known = new Map<number, TraceSource>();
  for (const { kind, text, path } of found.values) {
    const hash = hasher.hash(hasher.lanesOf([text]), 0, 2);
    if (!known.has(hash)) known.set(hash, { kind, path });
  }
  let units = 0;
  for (const { words, path } of found.sequences) {
    const source: TraceSource = { kind: "words", path };
    const lanes = hasher.lanesOf(words);
    for (let start = 0; start <= words.length - WORDS_IN_SEQUENCE; start++) {
      const hash = hasher.hash(lanes, 2 * start, 2 * (start + WORDS_IN_SEQUENCE));
      if (!known.has(hash)) known.set(hash, source);
      if (++units % PER_PAUSE === 0) yield;
    }
  }
  return known;
}

/** Two lanes of 32 bits with different keys and multipliers. */
class KeyedHasher {
  private readonly key_a: number;
  private readonly key_b: number;

  constructor(salt: string) {
    const key = sha256(`trace\0${salt}`);
    this.key_a = key.readInt32LE(0);
    this.key_b = key.readInt32LE(4);
  }

  lanesOf(texts: readonly string[]): Int32Array {
    const lanes = new Int32Array(2 * texts.length);
    for (let n = 0; n < texts.length; n++) {
      const text = texts[n]!;
      let a = this.key_a;
      let b = this.key_b;
      for (let i = 0; i < text.length; i++) {
        const unit = text.charCodeAt(i);
        a = Math.imul(a ^ unit, 0x9e3779b1);
        a ^= a >>> 15;
        b = Math.imul(b ^ unit, 0x85ebca77);
        b ^= b >>> 13;
      }
      lanes[2 * n] = mixed(a ^ text.length);
      lanes[2 * n + 1] = mixed(b);
    }
    return lanes;
  }

  /** Combines the lanes of consecutive texts into one number of 53 bits. */
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
