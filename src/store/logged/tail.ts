/**
 * What this process knows of the ledger lines behind the checkpoint's index: where each lies, and what
 * it can be found by. Bounded by the checkpoints.
 */
import type { LineInfo } from "./block.ts";

export class Tail {
  private lines: LineInfo[] = [];
  /** Where each line's first byte lies in the ledger. */
  private offsets: number[] = [];
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

  push(line: LineInfo): void {
    this.lines.push(line);
    this.offsets.push(this.offset);
    this.offset += line.length;
  }

  at(seq: number): LineInfo | undefined {
    return this.lines[seq - this.start];
  }

  offsetOf(seq: number): number | undefined {
    return this.offsets[seq - this.start];
  }

  /** Forgets lines before `seq`, which the checkpoint has taken in. */
  release(seq: number): void {
    if (seq <= this.start) return;
    this.lines = this.lines.slice(seq - this.start);
    this.offsets = this.offsets.slice(seq - this.start);
    this.start = seq;
  }
}
