/** The ledger lines after the checkpoint's index: their offsets and searchable values. Checkpoints bound its size. */
import type { LineInfo } from "./block.ts";

export class LedgerTail {
  private lines: LineInfo[] = [];
  /** The offset of each line's first byte in the ledger. */
  private offsets: number[] = [];
  private start: number;
  private offset: number;

  constructor(start = 0, offset = 0) {
    this.start = start;
    this.offset = offset;
  }

  /** The first `seq` in this tail. Older records are in the checkpoint's index. */
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

  /** Drops lines before `seq`, which the checkpoint contains. */
  release(seq: number): void {
    if (seq <= this.start) return;
    this.lines = this.lines.slice(seq - this.start);
    this.offsets = this.offsets.slice(seq - this.start);
    this.start = seq;
  }
}
