/** Found values, one after the other in one array. A text for each of them would cost more than finding it. */

import type { FingerprintMap, TraceSource } from "./fingerprint-map.ts";

export class ValueList {
  /** UTF-16 code units of all values. */
  codes = new Uint16Array(32);
  /** Start and end of each value, one after the other. */
  bounds = new Int32Array(16);
  /** The number of values. */
  length = 0;
  /** Kinds and paths, each once. */
  readonly sources: TraceSource[] = [];
  /** Position of each value's source in `sources`. */
  source_ids = new Int32Array(8);
  private end = 0;

  sourceOf(value: number): TraceSource {
    return this.sources[this.source_ids[value]!]!;
  }

  /** Returns the position of a new source. */
  addSource(source: TraceSource): number {
    return this.sources.push(source) - 1;
  }

  /** Adds a part of a text, without a character. */
  add(source: number, codes: Uint16Array, from: number, to: number, without = -1): void {
    this.reserve(to - from);
    const own = this.codes;
    let end = this.end;
    for (let i = from; i < to; i++) {
      const code = codes[i]!;
      if (code !== without) own[end++] = code;
    }
    this.close(source, end);
  }

  /** Adds the characters of a part of a text that `kept` has. */
  addOnly(source: number, codes: Uint16Array, from: number, to: number, kept: Uint8Array): void {
    this.reserve(to - from);
    const own = this.codes;
    let end = this.end;
    for (let i = from; i < to; i++) {
      const code = codes[i]!;
      if (kept[code] === 1) own[end++] = code;
    }
    this.close(source, end);
  }

  addText(source: number, text: string): void {
    this.reserve(text.length);
    let end = this.end;
    for (let i = 0; i < text.length; i++) this.codes[end++] = text.charCodeAt(i);
    this.close(source, end);
  }

  /** The values as texts, for tests. */
  texts(): string[] {
    return Array.from({ length: this.length }, (_, i) =>
      String.fromCharCode(...this.codes.subarray(this.bounds[2 * i], this.bounds[2 * i + 1])),
    );
  }

  private close(source: number, end: number): void {
    if (end === this.end) return;
    const value = this.length++;
    if (value === this.source_ids.length) {
      this.source_ids = grown(this.source_ids);
      this.bounds = grown(this.bounds);
    }
    this.source_ids[value] = source;
    this.bounds[2 * value] = this.end;
    this.bounds[2 * value + 1] = end;
    this.end = end;
  }

  private reserve(more: number): void {
    const size = this.end + more;
    if (size <= this.codes.length) return;
    const grown = new Uint16Array(2 * size);
    grown.set(this.codes);
    this.codes = grown;
  }
}

function grown(list: Int32Array): Int32Array<ArrayBuffer> {
  const twice = new Int32Array(2 * list.length);
  twice.set(list);
  return twice;
}

/** The words of one text, in order. Each five consecutive words are one value. */
export interface TracedWords {
  /** Position in the sources of the values. */
  source: number;
  text: string;
  /** Start and end of each word, one after the other, since a text for each word would cost more than all the rest. */
  bounds: Int32Array;
}

export interface TraceValues {
  /** Each with the position where it was found. A value can be listed several times. */
  values: ValueList;
  sequences: TracedWords[];
  /** Fingerprints by key. A document has those of its run and of its tenant. */
  fingerprints: { salt: string; map: FingerprintMap }[];
}

export interface TraceOptions {
  /** Also returns small numbers as amounts. Callers set it for arguments, not for results. */
  any_number: boolean;
  /**
   * The owner of a host controls its subdomains. A result has its hosts with their subdomains, arguments have the
   * hosts that theirs are subdomains of, and given texts have both.
   */
  subdomains: "of" | "in" | "both";
}
