/**
 * What this process knows of the ledger lines behind the checkpoint's index: where each lies, and what
 * it can be found by. Bounded by the checkpoints.
 */
import type { LineInfo } from "./block.ts";

export interface TailLine extends LineInfo {
  seq: number;
  /** Where its first byte lies in the ledger. */
  offset: number;
}

export class Tail {
  private lines: TailLine[] = [];
  private start: number;
  private offset: number;

  constructor(start = 0, offset = 0) {
    this.start = start;
    this.offset = offset;
  }

  /** The first `seq` it knows; older ones are in the checkpoint's index. */
  get first(): number {
    return this.start;
  }

  get next(): number {
    return this.start + this.lines.length;
  }

  push(info: LineInfo): void {
    this.lines.push({ ...info, seq: this.next, offset: this.offset });
    this.offset += info.length;
  }

  at(seq: number): TailLine | undefined {
    return this.lines[seq - this.start];
  }

  /** Forgets lines before `seq`, which the checkpoint has taken in. */
  release(seq: number): void {
    if (seq <= this.start) return;
    this.lines = this.lines.slice(seq - this.start);
    this.start = seq;
  }
}
