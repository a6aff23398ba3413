/** List of fingerprints with the kinds and places of their values. */
export const TRACE_KINDS = ["address", "url", "host", "number", "id", "file", "amount", "words"] as const;
export type TraceKind = (typeof TRACE_KINDS)[number];

export interface TraceSource {
  kind: TraceKind;
  path: string;
}

/** Fingerprints in their order, each with the first position of its value. A map would box every number. */
export class FingerprintMap {
  size = 0;
  private readonly fingerprints: Float64Array;
  private readonly sources: readonly TraceSource[];
  /** Position of each source in `sources`. */
  private readonly source_ids: Int32Array;
  /** Positions in the lists, plus one; 0 for a free slot. Null for a short list, which is searched from its start. */
  private readonly slots: Int32Array | null;

  /** `max` is the most fingerprints that will be added. */
  constructor(max = 0, sources: readonly TraceSource[] = []) {
    this.fingerprints = new Float64Array(max);
    this.sources = sources;
    this.source_ids = new Int32Array(max);
    this.slots = max <= SHORT_LIST ? null : new Int32Array(2 ** Math.ceil(Math.log2(2 * max + 2)));
  }

  keys(): number[] {
    const keys: number[] = [];
    for (let i = 0; i < this.size; i++) keys.push(this.fingerprints[i]!);
    return keys;
  }

  has(fingerprint: number): boolean {
    const { slots } = this;
    return slots === null ? this.isListed(fingerprint) : slots[this.slotOf(slots, fingerprint)] !== 0;
  }

  /** Keeps the first source, by its position in the sources. */
  add(fingerprint: number, source: number): void {
    const { slots } = this;
    if (slots === null) {
      if (this.isListed(fingerprint)) return;
    } else {
      const slot = this.slotOf(slots, fingerprint);
      if (slots[slot] !== 0) return;
      slots[slot] = this.size + 1;
    }
    this.source_ids[this.size] = source;
    this.fingerprints[this.size++] = fingerprint;
  }

  *[Symbol.iterator](): IterableIterator<readonly [number, TraceSource]> {
    for (let i = 0; i < this.size; i++) yield [this.fingerprints[i]!, this.sources[this.source_ids[i]!]!];
  }

  private isListed(fingerprint: number): boolean {
    for (let i = 0; i < this.size; i++) if (this.fingerprints[i] === fingerprint) return true;
    return false;
  }

  /** The slot of the fingerprint, or the free slot where it belongs. */
  private slotOf(slots: Int32Array, fingerprint: number): number {
    const { fingerprints } = this;
    const last = slots.length - 1;
    let slot = Math.trunc(fingerprint * 2 ** -21) & last;
    for (;;) {
      const position = slots[slot]!;
      if (position === 0 || fingerprints[position - 1] === fingerprint) return slot;
      slot = (slot + 1) & last;
    }
  }
}

/** Maximum length of a list that is searched from its start. */
const SHORT_LIST = 16;
