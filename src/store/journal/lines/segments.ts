/**
 * The checkpoint's index of the ledger. For each segment of records it stores the lengths of their lines, and for each
 * value of a searchable field the positions at which it occurs. A segment is written once, at a fraction of the cost of
 * one tree entry per record and field.
 */
import type { PreparedStatement, SqliteDatabase } from "../connection.ts";
import type { LineInfo } from "./block.ts";

export const SEARCH_FIELDS = ["run_id", "event", "actor", "tool", "tenant"] as const;
export type SearchField = (typeof SEARCH_FIELDS)[number];

/** Marks segments with an index by tenant. Segments of the first versions have none. */
const KNOWN = [-1, "tenant"] as const;

/** Positions have 16 bits. */
export const SEGMENT_RECORDS = 4_096;

export interface LedgerSegment {
  first_seq: number;
  records: number;
  offset: number;
  ts_min: number;
  ts_max: number;
}

/** Writes the lines from `first_seq` and `offset` on as segments. Idempotent. */
export function writeSegments(
  db: SqliteDatabase,
  first_seq: number,
  offset: number,
  lines: readonly LineInfo[],
): void {
  const segment = db.prepare("INSERT OR REPLACE INTO segments VALUES (?, ?, ?, ?, ?, ?)");
  const posting = db.prepare("INSERT OR REPLACE INTO postings VALUES (?, ?, ?, ?)");
  let start = offset;
  for (let from = 0; from < lines.length; from += SEGMENT_RECORDS) {
    const part = lines.slice(from, from + SEGMENT_RECORDS);
    const seq = first_seq + from;
    const lengths = Uint32Array.from(part, ({ length }) => length);
    let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    for (const { ts_ms } of part) {
      low = Math.min(low, ts_ms);
      high = Math.max(high, ts_ms);
    }
    segment.run(seq, part.length, start, low, high, new Uint8Array(lengths.buffer));
    SEARCH_FIELDS.forEach((field, number) => {
      for (const [value, places] of placesByValue(part, field)) {
        posting.run(number, value, seq, new Uint8Array(Uint16Array.from(places).buffer));
      }
    });
    if (part.every(({ tenant }) => tenant !== null)) posting.run(...KNOWN, seq, new Uint8Array(0));
    for (const { length } of part) start += length;
  }
}

/** In tree order, so that neighboring rows are written together. */
function placesByValue(lines: readonly LineInfo[], field: SearchField): [string, number[]][] {
  const found = new Map<string, number[]>();
  lines.forEach((line, place) => {
    const value = line[field];
    if (value === undefined || value === null) return;
    const places = found.get(value);
    if (places === undefined) found.set(value, [place]);
    else places.push(place);
  });
  return [...found].sort(([a], [b]) => (a < b ? -1 : 1));
}

export class SegmentReader {
  private readonly containing: PreparedStatement;
  private readonly nextUp: PreparedStatement;
  private readonly nextDown: PreparedStatement;
  private readonly lengthsOf: PreparedStatement;
  private readonly posting: PreparedStatement;
  private readonly postingUp: PreparedStatement;
  private readonly postingDown: PreparedStatement;
  private readonly later: PreparedStatement;
  /** The last segment checked for a tenant index, and the last one without it. */
  private looked = -1;
  private plain = -1;

  constructor(db: SqliteDatabase) {
    const columns = "SELECT first_seq, records, offset, ts_min, ts_max FROM segments";
    this.containing = db.prepare(`${columns} WHERE first_seq <= ? ORDER BY first_seq DESC LIMIT 1`);
    this.nextUp = db.prepare(`${columns} WHERE first_seq >= ? ORDER BY first_seq LIMIT 1`);
    this.nextDown = this.containing;
    this.lengthsOf = db.prepare("SELECT lengths FROM segments WHERE first_seq = ?");
    this.posting = db.prepare("SELECT places FROM postings WHERE field = ? AND value = ? AND first_seq = ?");
    const next = "SELECT first_seq FROM postings WHERE field = ? AND value = ? AND first_seq";
    this.postingUp = db.prepare(`${next} >= ? ORDER BY first_seq LIMIT 1`);
    this.postingDown = db.prepare(`${next} <= ? ORDER BY first_seq DESC LIMIT 1`);
    this.later = db.prepare(`SELECT first_seq, EXISTS (SELECT 1 FROM postings p
      WHERE field = ${KNOWN[0]} AND value = '${KNOWN[1]}' AND p.first_seq = s.first_seq) AS known
      FROM segments s WHERE first_seq > ? ORDER BY first_seq`);
  }

  /** Returns the segment that contains `seq`. */
  at(seq: number): LedgerSegment | undefined {
    const segment = this.containing.get(seq) as LedgerSegment | undefined;
    return segment !== undefined && seq < segment.first_seq + segment.records ? segment : undefined;
  }

  /** Returns the nearest segment that begins at or after (`asc`), or at or before (`desc`), `seq`. */
  next(seq: number, order: "asc" | "desc"): LedgerSegment | undefined {
    return (order === "asc" ? this.nextUp : this.nextDown).get(seq) as LedgerSegment | undefined;
  }

  /** Returns the start of the nearest segment that contains the value, or may contain it. */
  nextWith(field: SearchField, value: string, seq: number, order: "asc" | "desc"): number | undefined {
    const statement = order === "asc" ? this.postingUp : this.postingDown;
    const row = statement.get(SEARCH_FIELDS.indexOf(field), value, seq) as { first_seq: number } | undefined;
    const plain = field === "tenant" ? this.lastPlain() : -1;
    if (order === "asc") return seq <= plain ? this.next(seq, order)?.first_seq : row?.first_seq;
    const before = this.next(Math.min(seq, plain), order)?.first_seq;
    return before === undefined || (row !== undefined && row.first_seq > before) ? row?.first_seq : before;
  }

  /** Returns the start of the last segment without a tenant index, or -1. */
  private lastPlain(): number {
    for (const row of this.later.all(this.looked) as { first_seq: number; known: number }[]) {
      this.looked = row.first_seq;
      if (row.known === 0) this.plain = row.first_seq;
    }
    return this.plain;
  }

  lengths(first_seq: number): Uint32Array {
    const row = this.lengthsOf.get(first_seq) as { lengths: Uint8Array } | undefined;
    if (row === undefined) return new Uint32Array(0);
    return new Uint32Array(Uint8Array.from(row.lengths).buffer);
  }

  /** Returns the positions in a segment at which the field has the value, or may have it, in order. */
  places(field: SearchField, value: string, { first_seq, records }: LedgerSegment): Uint16Array {
    // In a journal begun by an older version, only some records have their tenants.
    const isPlain =
      field === "tenant" &&
      first_seq <= this.lastPlain() &&
      this.posting.get(...KNOWN, first_seq) === undefined;
    if (isPlain) return Uint16Array.from({ length: records }, (_, place) => place);
    const row = this.posting.get(SEARCH_FIELDS.indexOf(field), value, first_seq) as
      | { places: Uint8Array }
      | undefined;
    return row === undefined ? new Uint16Array(0) : new Uint16Array(Uint8Array.from(row.places).buffer);
  }
}
