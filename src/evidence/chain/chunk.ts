/**
 * Checking a stretch of whole lines by itself: every record's hash, its number and its link to the one
 * before it. What only its neighbours can tell (where the stretch belongs) is left to the join.
 */
import { hash as digest } from "node:crypto";
import { isHash, type RecordFacts, readRecordLine, readRecordText } from "../../ledger/read-record.ts";
import { idBytes, type RunSeed, type RunSpans, RunTable } from "./runs.ts";
import {
  HASH,
  HashSlot,
  numberAt,
  PREV,
  RUN_ID,
  RUN_SEQ,
  ScannedFields,
  SEQ,
  SLACK,
  scanRecord,
} from "./scan.ts";
import { type Node, NodeBuilder } from "./subtrees.ts";

/** Whole lines: `length` bytes that end in a line break, with room for the scanner behind them. */
export interface WholeLines {
  bytes: Buffer;
  length: number;
  /** The last of them is the last of all. */
  is_end: boolean;
}

export interface CheckOptions {
  /** Keys the numbering within runs; null where it is not looked at. */
  seed: RunSeed | null;
  /** Which parts of the tree to build; null for none. */
  tree: { cuts: readonly number[]; largest: number } | null;
  /** Lines of a bundle: a comma ends all but the last, and space inside a record does not matter. */
  in_bundle: boolean;
}

interface BadLine {
  /** The line's place in the stretch. */
  index: number;
  problem: string;
  /** The line as such could not be read, so the layout may be another one. */
  unreadable: boolean;
}

export interface StretchFacts {
  /** What the first readable record claims of its place. */
  first: { seq: number; prev: string } | null;
  records: number;
  /** The hash of the last good record. */
  hash: string;
  runs: RunSpans | null;
  nodes: Node[] | null;
  bad: BadLine | null;
}

/** Cut out of the bytes, so that what is left is what the hash covers. */
const MEMBER = ',"hash":';
const CUT = MEMBER.length + 66;
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export function asLines(text: string): WholeLines {
  const length = Buffer.byteLength(text);
  const bytes = Buffer.from(new ArrayBuffer(length + SLACK));
  bytes.write(text);
  return { bytes, length, is_end: true };
}

export class StretchChecker {
  private readonly options: CheckOptions;
  private readonly runs: RunTable | null;
  private readonly found = new ScannedFields();
  /** The hash of the last good record, and room for that of the next. */
  private last = new HashSlot();
  private stated = new HashSlot();
  private facts!: StretchFacts;
  private nodes: NodeBuilder | null = null;

  constructor(options: CheckOptions) {
    this.options = options;
    this.runs = options.seed === null ? null : new RunTable(options.seed);
  }

  /** Changes the bytes on the way. */
  check(lines: WholeLines): StretchFacts {
    const { bytes, length } = lines;
    const facts: StretchFacts = { first: null, records: 0, hash: "", runs: null, nodes: null, bad: null };
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

  /** Behind the line break, if the line ends as it should right behind the record. */
  private lineEnd({ bytes, length, is_end }: WholeLines, end: number): number {
    const isPlain = !this.options.in_bundle || (is_end && end === length - 1);
    const p = isPlain ? end : end + 1;
    if (!isPlain && (bytes[end] !== 0x2c || (is_end && p === length - 1))) return -1;
    return p < length && bytes[p] === 0x0a ? p + 1 : -1;
  }

  /** Takes a record that is right in everything; any other is left as it was, for the strict reader to judge. */
  private takeFound(view: DataView, bytes: Buffer, p: number, end: number): boolean {
    const { facts, stated, last, found } = this;
    const { at, to } = found;
    const hashAt = at[HASH]! + 1;
    const prevAt = at[PREV]! + 1;
    const seq = numberAt(bytes, at[SEQ]!, to[SEQ]!);
    const prev = facts.first === null ? bytes.toString("latin1", prevAt, prevAt + 64) : undefined;
    if (prev !== undefined) {
      if (!isHash(prev)) return false;
    } else if (seq !== facts.first!.seq + facts.records || !last.isAt(view, prevAt)) return false;
    // What stands before the hash moves over it, so that what the hash covers lies in one piece.
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

  /** Whether the record found is the next one of its run; one that is not stays uncounted. */
  private isNumbered(view: DataView, bytes: Buffer, seq: number): boolean {
    const { runs, found } = this;
    if (runs === null || !found.has(RUN_ID)) return true;
    const run_seq = numberAt(bytes, found.at[RUN_SEQ]!, found.to[RUN_SEQ]!);
    return runs.countRecord(view, found.at[RUN_ID]! + 1, found.to[RUN_ID]! - 1, run_seq, seq) === undefined;
  }

  private takeSlowly({ bytes, length, is_end }: WholeLines, p: number): string | undefined {
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
    else if (seq !== facts.first.seq + facts.records) problem = wrongPlace(seq);
    else if (prev !== this.last.toString()) problem = BROKEN_LINK;
    if (digest("sha256", body, "hex") !== hash) return CHANGED;
    if (problem !== undefined) return problem;
    if (this.runs !== null && run_id !== undefined) {
      // As it stands in a canonical line, so that both ways of reading know one run by one name.
      const id = idBytes(JSON.stringify(run_id).slice(1, -1));
      const due = this.runs.countRecord(id, 0, id.byteLength, run_seq!, seq);
      if (due !== undefined) return wrongNumber(run_seq!, due);
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

export function wrongPlace(seq: number): string {
  return `it says that it is record ${seq}: records are missing, repeated or out of order`;
}

export function wrongNumber(run_seq: number, due: number): string {
  return `its run_seq is ${run_seq} where ${due} was due: a record of its run is missing, repeated or out of order`;
}
