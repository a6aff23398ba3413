/**
 * Verifies a chunk of complete lines in isolation: each record's hash, its number and its link to the record before it.
 * The position of the chunk in the ledger is left to the join.
 */
import { hash as digest } from "node:crypto";
import { isHash, type RecordFacts, readRecordLine, readRecordText } from "../../ledger/read-record.ts";
import { idBytes, type RunSeed, type RunSpans, RunTable } from "./run-numbering.ts";
import {
  HASH_FIELD,
  HashSlot,
  numberAt,
  PREV_FIELD,
  RUN_ID_FIELD,
  RUN_SEQ_FIELD,
  SCAN_PADDING_BYTES,
  ScannedFields,
  SEQ_FIELD,
  scanRecord,
} from "./scan.ts";
import { NodeBuilder, type SubtreeNode } from "./subtrees.ts";

/** Complete lines: `length` bytes that end in a line break, followed by spare room for the scanner. */
export interface LineChunk {
  bytes: Buffer;
  length: number;
  /** Whether the last of these lines is the last of all. */
  is_end: boolean;
}

export interface CheckOptions {
  /** Hash key for the numbering within runs; null to skip that check. */
  seed: RunSeed | null;
  /** Parts of the tree to build; null for none. */
  tree: { cuts: readonly number[]; largest: number } | null;
  /**
   * Whether the lines are from a bundle: all but the last end in a comma, and whitespace within a record is ignored.
   */
  in_bundle: boolean;
}

interface BadLine {
  /** Index of the line in the chunk. */
  index: number;
  problem: string;
  /** Whether the line could not be parsed, so the bundle may have another layout. */
  unreadable: boolean;
}

export interface ChunkSummary {
  /** Position that the first readable record claims. */
  first: { seq: number; prev: string } | null;
  records: number;
  /** Hash of the last good record. */
  hash: string;
  runs: RunSpans | null;
  nodes: SubtreeNode[] | null;
  bad: BadLine | null;
}

/** Removed from the bytes, because the hash covers the record without it. */
const MEMBER = ',"hash":';
const CUT = MEMBER.length + 66;
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export function toLineChunk(text: string): LineChunk {
  const length = Buffer.byteLength(text);
  const bytes = Buffer.from(new ArrayBuffer(length + SCAN_PADDING_BYTES));
  bytes.write(text);
  return { bytes, length, is_end: true };
}

export class ChunkVerifier {
  private readonly options: CheckOptions;
  private readonly runs: RunTable | null;
  private readonly found = new ScannedFields();
  /** Hash of the last good record, and a buffer for the next. */
  private last = new HashSlot();
  private stated = new HashSlot();
  private facts!: ChunkSummary;
  private nodes: NodeBuilder | null = null;

  constructor(options: CheckOptions) {
    this.options = options;
    this.runs = options.seed === null ? null : new RunTable(options.seed);
  }

  /** Verifies the lines, overwriting their bytes. */
  check(lines: LineChunk): ChunkSummary {
    const { bytes, length } = lines;
    const facts: ChunkSummary = { first: null, records: 0, hash: "", runs: null, nodes: null, bad: null };
    this.facts = facts;
    this.nodes = null;
    this.runs?.clear();
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    let p = 0;
    while (p < length) {
      const end = scanRecord(view, bytes, p, this.found);
      let next = end < 0 ? -1 : this.lineEnd(lines, end);
      if (next < 0 || !this.takeFound(view, bytes, p, end)) {
        next = bytes.indexOf(0x0a, p) + 1;
        const problem = this.takeSlowly(lines, p);
        if (problem !== undefined) {
          facts.bad ??= { index: facts.records, problem, unreadable: false };
          break;
        }
      }
      facts.records++;
      p = next;
    }
    if (facts.records > 0) facts.hash = this.last.toString();
    facts.runs = this.runs?.spans() ?? null;
    facts.nodes = this.nodes === null ? null : (this.nodes as NodeBuilder).finish();
    return facts;
  }

  /** Offset after the line break, or -1 if the line does not end properly after the record. */
  private lineEnd({ bytes, length, is_end }: LineChunk, end: number): number {
    const isPlain = !this.options.in_bundle || (is_end && end === length - 1);
    const p = isPlain ? end : end + 1;
    if (!isPlain && (bytes[end] !== 0x2c || (is_end && p === length - 1))) return -1;
    return p < length && bytes[p] === 0x0a ? p + 1 : -1;
  }

  /** Accepts a fully valid record. Leaves any other one unchanged, for the strict reader. */
  private takeFound(view: DataView, bytes: Buffer, p: number, end: number): boolean {
    const { facts, stated, last, found } = this;
    const { at, to } = found;
    const hashAt = at[HASH_FIELD]! + 1;
    const prevAt = at[PREV_FIELD]! + 1;
    const seq = numberAt(bytes, at[SEQ_FIELD]!, to[SEQ_FIELD]!);
    const prev = facts.first === null ? bytes.toString("latin1", prevAt, prevAt + 64) : undefined;
    if (prev !== undefined) {
      if (!isHash(prev)) return false;
    } else if (seq !== facts.first!.seq + facts.records || !last.isAt(view, prevAt)) return false;
    // Move the bytes before the hash member over it, so that the hashed bytes are contiguous.
    stated.take(view, hashAt);
    const before = hashAt - 1 - MEMBER.length;
    bytes.copyWithin(p + CUT, p, before);
    const body = new Uint8Array(bytes.buffer, bytes.byteOffset + p + CUT, end - p - CUT);
    if (!stated.spells(digest("sha256", body, "binary")) || !this.isNumbered(view, bytes, seq)) {
      bytes.copyWithin(p, p + CUT, before + CUT);
      bytes.write(`${MEMBER}"${stated}"`, before, "latin1");
      return false;
    }
    if (prev !== undefined) this.begin(seq, prev);
    if (this.nodes !== null) {
      bytes[p + CUT - 1] = 0;
      const leaf = new Uint8Array(bytes.buffer, body.byteOffset - 1, body.length + 1);
      this.nodes.add(digest("sha256", leaf, "hex"), stated.toString());
    }
    this.stated = last;
    this.last = stated;
    return true;
  }

  /** Whether the record has the next number of its run. If not, it is not counted. */
  private isNumbered(view: DataView, bytes: Buffer, seq: number): boolean {
    const { runs, found } = this;
    if (runs === null || !found.has(RUN_ID_FIELD)) return true;
    const run_seq = numberAt(bytes, found.at[RUN_SEQ_FIELD]!, found.to[RUN_SEQ_FIELD]!);
    return (
      runs.countRecord(view, found.at[RUN_ID_FIELD]! + 1, found.to[RUN_ID_FIELD]! - 1, run_seq, seq) ===
      undefined
    );
  }

  private takeSlowly({ bytes, length, is_end }: LineChunk, p: number): string | undefined {
    const { facts } = this;
    const to = bytes.indexOf(0x0a, p);
    const reading = this.read(bytes.subarray(p, to), is_end && to === length - 1);
    if (typeof reading === "string") {
      facts.bad = { index: facts.records, problem: reading, unreadable: true };
      return reading;
    }
    const { seq, prev, hash, body, run_id, run_seq } = reading;
    let problem: string | undefined;
    if (facts.first === null) this.begin(seq, prev);
    else if (seq !== facts.first.seq + facts.records) problem = wrongPositionText(seq);
    else if (prev !== this.last.toString()) problem = BROKEN_LINK;
    if (digest("sha256", body, "hex") !== hash) return CHANGED;
    if (problem !== undefined) return problem;
    if (this.runs !== null && run_id !== undefined) {
      // In the escaped form of a canonical line, so that both readers use the same bytes for a run.
      const id = idBytes(JSON.stringify(run_id).slice(1, -1));
      const due = this.runs.countRecord(id, 0, id.byteLength, run_seq!, seq);
      if (due !== undefined) return wrongRunNumberText(run_seq!, due);
    }
    this.nodes?.add(digest("sha256", `\0${body}`, "hex"), hash);
    this.last.set(hash);
    return undefined;
  }

  private read(line: Buffer, isVeryLast: boolean): RecordFacts | string {
    let text: string;
    try {
      text = UTF8.decode(line);
    } catch {
      return "the line is not UTF-8";
    }
    if (!this.options.in_bundle) {
      if (text.endsWith("\r")) return "the line ends in CR LF: the file was converted on the way";
      return text === "" ? "the line is empty" : readRecordLine(text);
    }
    const record = isVeryLast ? text : /^(.*),[ \t\r]*$/s.exec(text)?.[1];
    return record === undefined ? "a comma is missing behind it" : readRecordText(record);
  }

  private begin(seq: number, prev: string): void {
    const { tree } = this.options;
    this.facts.first = { seq, prev };
    if (tree !== null) this.nodes = new NodeBuilder(seq, tree.cuts, tree.largest);
  }
}

export const BROKEN_LINK = "its prev is not the hash of the record before it";
const CHANGED = "its hash does not match what it says: it was changed";

export function wrongPositionText(seq: number): string {
  return `it says that it is record ${seq}: records are missing, repeated or out of order`;
}

export function wrongRunNumberText(run_seq: number, due: number): string {
  return `its run_seq is ${run_seq} where ${due} was due: a record of its run is missing, repeated or out of order`;
}
