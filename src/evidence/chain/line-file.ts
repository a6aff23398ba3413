/**
 * Reads lines of a file by byte range, so that several readers can share the work. Opens only regular files, and only
 * for reading, so verification never changes evidence.
 */
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { fileError, unreadableReason } from "../../config/files.ts";
import { SvcError } from "../../kernel/errors.ts";
import type { LineChunk } from "./chunk.ts";
import { SCAN_PADDING_BYTES } from "./scan.ts";

/** Larger than any record of a 1 MB request, escapes included. */
export const MAX_LINE_BYTES = 16 * 1_048_576;
const STEP = 65_536;
const NEWLINE = 0x0a;

/** Byte range of complete lines: from the start of one line to the end of another, line break included. */
export interface LineRegion {
  start: number;
  end: number;
}

export class LineFile {
  readonly path: string;
  private readonly fd: number;
  private buffer = Buffer.alloc(0);

  constructor(path: string) {
    this.path = path;
    try {
      // Without O_NONBLOCK, opening a pipe waits for its writer.
      this.fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    } catch (error) {
      throw fileError(path, error);
    }
    const problem = unreadableReason(fstatSync(this.fd), Number.POSITIVE_INFINITY);
    if (problem === undefined) return;
    closeSync(this.fd);
    throw new SvcError("invalid", `${path}: ${problem}`);
  }

  get size(): number {
    return fstatSync(this.fd).size;
  }

  close(): void {
    closeSync(this.fd);
  }

  /** Bytes of the file; fewer at its end. */
  bytes(from: number, to: number): Buffer {
    const into = Buffer.allocUnsafe(Math.max(0, to - from));
    return into.subarray(0, this.fill(into, from));
  }

  /** Offset after the last line break before `size`, or `floor` if there is none. */
  lastLineEnd(size: number, floor = 0): number {
    for (let to = size; to > floor; to -= STEP) {
      if (size - to > MAX_LINE_BYTES) throw tooLong(this.path);
      const from = Math.max(floor, to - STEP);
      const at = this.bytes(from, to).lastIndexOf(NEWLINE);
      if (at >= 0) return from + at + 1;
    }
    return floor;
  }

  /**
   * Lines that begin in `[from, to)`. The bytes are valid until the next call. `region` limits the read and ends after
   * a line break.
   */
  lines(region: LineRegion, from: number, to: number): LineChunk {
    // Read one byte earlier: a line begins here only if another one ended just before.
    const base = from === region.start ? from : from - 1;
    let want = Math.min(region.end, to + STEP) - base;
    for (;;) {
      const got = this.load(base, want);
      const begin = base === from ? 0 : this.buffer.indexOf(NEWLINE) + 1;
      const end = this.buffer.indexOf(NEWLINE, to - 1 - base) + 1;
      if (end > 0 && end <= got) {
        const isNone = begin >= end || base + begin >= to;
        const is_end = base + end === region.end;
        return { bytes: this.buffer.subarray(begin), length: isNone ? 0 : end - begin, is_end };
      }
      // A region ends after a line break, so a short read means that the file shrank.
      if (got < want || base + got >= region.end) throw shrunk(this.path);
      if (want - (to - base) > MAX_LINE_BYTES) throw tooLong(this.path);
      want = Math.min(region.end - base, 2 * want);
    }
  }

  private load(from: number, length: number): number {
    if (this.buffer.length < length + SCAN_PADDING_BYTES)
      this.buffer = Buffer.from(new ArrayBuffer(length + SCAN_PADDING_BYTES));
    const got = this.fill(this.buffer.subarray(0, length), from);
    // Clear leftovers of an earlier, longer read, so that the scanner cannot take them for this one's text.
    this.buffer.fill(0, got, Math.min(got + SCAN_PADDING_BYTES, this.buffer.length));
    return got;
  }

  private fill(into: Buffer, from: number): number {
    let got = 0;
    while (got < into.length) {
      const n = readSync(this.fd, into, got, into.length - got, from + got);
      if (n === 0) break;
      got += n;
    }
    return got;
  }
}

function tooLong(path: string): SvcError {
  return new SvcError("invalid", `${path}: a line is longer than any record can be`);
}

function shrunk(path: string): SvcError {
  return new SvcError("unavailable", `${path}: became shorter while it was read; try again`);
}
