/**
 * Searches the ledger: the checkpoint's index for older records, the tail in memory for newer ones, and the lines
 * themselves to confirm a match. Works by position, one range at a time, so concurrent checkpoints and records do not
 * matter, and memory stays constant.
 */
import type { RecordQuery } from "../../govern/port/store.ts";
import { SvcError } from "../../kernel/errors.ts";
import { matchesRecord } from "../query-match.ts";
import type { CheckpointReader } from "./checkpoint/checkpoint.ts";
import type { LineInfo } from "./lines/block.ts";
import { type LedgerSegment, SEARCH_FIELDS, SEGMENT_RECORDS, type SearchField } from "./lines/segments.ts";
import type { StoreView } from "./store-view.ts";

/** The byte range of consecutive lines. */
export interface LineRange {
  offset: number;
  lengths: number[];
}

export interface LineReader {
  /** Returns the lines of [from, to] in order, or fewer if the medium has lost some. */
  range(from: number, to: number): Promise<string[]>;
}

interface Condition {
  field: SearchField;
  values: readonly string[];
}

const READ_LINES = 512;

export class LedgerSearch {
  private readonly storeView: StoreView;
  private readonly checkpoint: () => CheckpointReader;
  private readonly reader: LineReader;
  private readonly decoded = new Map<number, { segment: LedgerSegment; starts: number[] }>();

  constructor(storeView: StoreView, checkpoint: () => CheckpointReader, reader: LineReader) {
    this.storeView = storeView;
    this.checkpoint = checkpoint;
    this.reader = reader;
  }

  async records(query: RecordQuery): Promise<string[]> {
    const low = Math.max(0, query.from ?? 0);
    const high = Math.min(query.to ?? Number.MAX_SAFE_INTEGER, this.storeView.head.records - 1);
    const order = query.order ?? "asc";
    const conditions = conditionsOf(query);
    const isNarrow = conditions.length > 0 || query.since_ms !== undefined || query.until_ms !== undefined;
    const out: string[] = [];
    let at = order === "asc" ? low : high;
    while (at >= low && at <= high && out.length < query.limit) {
      const wanted =
        query.q === undefined && !isNarrow ? Math.min(READ_LINES, query.limit - out.length) : READ_LINES;
      const found = isNarrow
        ? this.candidates(at, low, high, query, conditions)
        : everything(at, low, high, order, wanted);
      for (const group of neighbours(found.seqs, order, wanted)) {
        const lines = await this.lines(group);
        for (const line of lines) {
          if (out.length < query.limit && matchesRecord(query, line)) out.push(line);
        }
        if (out.length >= query.limit) break;
      }
      at = found.next;
    }
    return out;
  }

  /** Returns the byte range of the lines [from, to] in the ledger file. */
  locate(from: number, to: number): LineRange {
    let offset: number | undefined;
    const lengths: number[] = [];
    for (let seq = from; seq <= to; ) {
      if (seq >= this.storeView.tail.first) {
        const line = this.storeView.tail.at(seq);
        if (line === undefined) break;
        offset ??= this.storeView.tail.offsetOf(seq)!;
        lengths.push(line.length);
        seq++;
        continue;
      }
      const found = this.decode(seq);
      if (found === undefined) break;
      const last = Math.min(to, found.segment.first_seq + found.segment.records - 1);
      offset ??= found.starts[seq - found.segment.first_seq]!;
      for (; seq <= last; seq++) {
        const place = seq - found.segment.first_seq;
        lengths.push(found.starts[place + 1]! - found.starts[place]!);
      }
    }
    return { offset: offset ?? 0, lengths };
  }

  private async lines(group: readonly number[]): Promise<string[]> {
    const [first, last] = [group[0]!, group[group.length - 1]!];
    const from = Math.min(first, last);
    const to = Math.max(first, last);
    const lines = await this.reader.range(from, to);
    if (lines.length !== to - from + 1) {
      // A caller would take an incomplete result for the full one.
      throw new SvcError("corrupt", `records ${from} to ${to} cannot all be read: run svc verify`);
    }
    const wanted: string[] = [];
    for (const seq of group) wanted.push(lines[seq - from]!);
    return wanted;
  }

  /** Returns the next candidate records from `at` on in query order, and the position to continue from. */
  private candidates(
    at: number,
    low: number,
    high: number,
    query: RecordQuery,
    conditions: readonly Condition[],
  ): { seqs: number[]; next: number } {
    const isUp = query.order !== "desc";
    const { tail } = this.storeView;
    const step = isUp ? 1 : -1;
    if (at >= tail.first) {
      const seqs: number[] = [];
      const end = isUp ? Math.min(high, tail.next - 1) : Math.max(low, tail.first);
      for (let seq = at; isUp ? seq <= end : seq >= end; seq += step) {
        const line = tail.at(seq);
        if (line !== undefined && mayMatch(line, query, conditions)) seqs.push(seq);
      }
      return { seqs, next: isUp ? high + 1 : end - 1 };
    }
    const segment = this.segmentFrom(at, isUp, conditions);
    // The checkpoint may already be ahead of this process. For records in the tail, the tail decides.
    if (segment === undefined || segment.first_seq >= tail.first)
      return { seqs: [], next: isUp ? tail.first : -1 };
    const begin = segment.first_seq;
    const end = begin + segment.records - 1;
    const next = isUp ? end + 1 : begin - 1;
    if (segment.ts_max < (query.since_ms ?? Number.NEGATIVE_INFINITY)) return { seqs: [], next };
    if (segment.ts_min > (query.until_ms ?? Number.POSITIVE_INFINITY)) return { seqs: [], next };
    const [from, to] = isUp
      ? [Math.max(low, at), Math.min(high, end)]
      : [Math.max(low, begin), Math.min(at, end)];
    const seqs = this.placesIn(segment, conditions)
      .map((place) => begin + place)
      .filter((seq) => seq >= from && seq <= to);
    return { seqs: isUp ? seqs : seqs.reverse(), next };
  }

  /** Returns the nearest segment from `at` on that has a value of every condition, as far as one lookup shows. */
  private segmentFrom(
    at: number,
    isUp: boolean,
    conditions: readonly Condition[],
  ): LedgerSegment | undefined {
    const { segments } = this.checkpoint();
    const here = segments.at(at);
    const start = isUp ? (here?.first_seq ?? at) : at;
    const order = isUp ? "asc" : "desc";
    if (conditions.length === 0) return here ?? segments.next(start, order);
    let reached = start;
    for (const { field, values } of conditions) {
      let best: number | undefined;
      for (const value of values) {
        const found = segments.nextWith(field, value, reached, order);
        if (found !== undefined && (best === undefined || (isUp ? found < best : found > best))) best = found;
      }
      if (best === undefined) return undefined;
      reached = best;
    }
    return segments.at(reached);
  }

  private placesIn(segment: LedgerSegment, conditions: readonly Condition[]): number[] {
    const { segments } = this.checkpoint();
    let places: number[] | undefined;
    for (const { field, values } of conditions) {
      const found = new Set<number>();
      for (const value of values)
        for (const place of segments.places(field, value, segment)) found.add(place);
      places =
        places === undefined ? [...found].sort((a, b) => a - b) : places.filter((place) => found.has(place));
    }
    return places ?? Array.from({ length: segment.records }, (_, place) => place);
  }

  private decode(seq: number): { segment: LedgerSegment; starts: number[] } | undefined {
    for (const entry of this.decoded.values()) {
      const { first_seq, records } = entry.segment;
      if (seq >= first_seq && seq < first_seq + records) return entry;
    }
    const { segments } = this.checkpoint();
    const segment = segments.at(seq);
    if (segment === undefined) return undefined;
    const starts = [segment.offset];
    for (const length of segments.lengths(segment.first_seq))
      starts.push(starts[starts.length - 1]! + length);
    // A few suffice, because pages are read in sequence.
    if (this.decoded.size >= 4) this.decoded.clear();
    const entry = { segment, starts };
    this.decoded.set(segment.first_seq, entry);
    return entry;
  }
}

function conditionsOf(query: RecordQuery): Condition[] {
  const conditions: Condition[] = [];
  for (const field of SEARCH_FIELDS) {
    const wanted = query[field];
    if (wanted !== undefined)
      conditions.push({ field, values: typeof wanted === "string" ? [wanted] : wanted });
  }
  return conditions;
}

function mayMatch(line: LineInfo, query: RecordQuery, conditions: readonly Condition[]): boolean {
  if (query.since_ms !== undefined && line.ts_ms < query.since_ms) return false;
  if (query.until_ms !== undefined && line.ts_ms > query.until_ms) return false;
  return conditions.every(({ field, values }) => {
    const value = line[field];
    return value === null || (value !== undefined && values.includes(value));
  });
}

function everything(at: number, low: number, high: number, order: "asc" | "desc", count: number) {
  const seqs: number[] = [];
  const step = order === "asc" ? 1 : -1;
  let seq = at;
  for (; seq >= low && seq <= high && seqs.length < count; seq += step) seqs.push(seq);
  return { seqs, next: seq };
}

/** A gap of up to this many lines is read through instead of skipped. */
const GAP = 4;

/** Splits a list into ranges at gaps that are too large to read through. */
function* neighbours(
  seqs: readonly number[],
  order: "asc" | "desc",
  size: number,
): IterableIterator<number[]> {
  const step = order === "asc" ? 1 : -1;
  const most = Math.min(size, SEGMENT_RECORDS);
  let group: number[] = [];
  for (const seq of seqs) {
    const last = group[group.length - 1];
    if (last !== undefined && (group.length >= most || (seq - last) * step > GAP)) {
      yield group;
      group = [];
    }
    group.push(seq);
  }
  if (group.length > 0) yield group;
}
