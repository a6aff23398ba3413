/**
 * The journal's text. A unit of work is one block: a line for each document it changed, then one line
 * that seals it, with where the ledger stands behind it and a checksum that carries on from the block
 * before. Every line is JSON. A block counts only if its seal is whole and its checksum right, so a
 * torn, missing, doubled or altered block cannot be mistaken for a good one.
 */
import { crc32 } from "node:zlib";
import type { Head } from "../../ledger/record.ts";
import type { CommittedUnit } from "../batch.ts";
import { INDEX, type IndexEntry, type TableName, type Tables } from "../tables.ts";

export type AnyDoc = Tables[TableName];

/** A document as the journal has it; parsed when somebody asks for it. */
export interface Slot extends IndexEntry {
  doc: AnyDoc | undefined;
  text: string | undefined;
}

export interface Put {
  table: TableName;
  key: string;
  /** Null for a deletion. */
  slot: Slot | null;
}

/** What a search needs to know of a ledger line without reading it. */
export interface LineInfo {
  /** In bytes, its line break included. */
  length: number;
  ts_ms: number;
  event: string;
  actor: string;
  run_id: string | undefined;
  tool: string | undefined;
}

export interface UnitBlock {
  kind: "unit";
  /** Where the ledger stands behind the unit. */
  head: Head;
  size: number;
  lines: LineInfo[];
  puts: Put[];
  /** The last of its batch: readers take a batch as a whole. */
  end: boolean;
}

export type JournalItem =
  | UnitBlock
  /** Opens a journal: which one it is and where the ledger stood. */
  | { kind: "header"; generation: number; head: Head; size: number }
  /** Closes a journal: what follows is in that one. */
  | { kind: "next"; generation: number }
  /** Takes back every block of this journal from that offset on. */
  | { kind: "void"; from: number; head: Head; size: number };

export type Placed<T extends JournalItem = JournalItem> = T & { from: number; to: number; crc: number };

/** Where a writer carries on. */
export interface JournalTip {
  size: number;
  crc: number;
}

export interface EncodedBatch {
  units: UnitBlock[];
  text: string;
  tip: JournalTip;
}

const CRC_PREFIX = '{"crc":"';
const SEALED_FROM = CRC_PREFIX.length + 8 + 2;

export function docOf(slot: Slot): AnyDoc {
  if (slot.doc === undefined) {
    slot.doc = JSON.parse(slot.text!) as AnyDoc;
    slot.text = undefined;
  }
  return slot.doc;
}

export function textOf(slot: Slot): string {
  return slot.text ?? JSON.stringify(slot.doc);
}

/** The batch as journal text, and as what this process will remember of it. */
export function encodeBatch(committed: readonly CommittedUnit[], tip: JournalTip): EncodedBatch {
  const units: UnitBlock[] = [];
  let { size, crc } = tip;
  let text = "";
  for (let i = 0; i < committed.length; i++) {
    const { head, lines, records, changes } = committed[i]!;
    const puts: Put[] = [];
    let body = "";
    for (const { table, key, doc } of changes) {
      if (doc === undefined) {
        puts.push({ table, key, slot: null });
        body += `["${table}",${JSON.stringify(key)}]\n`;
        continue;
      }
      const entry = (INDEX[table] as (doc: AnyDoc) => IndexEntry)(doc);
      puts.push({
        table,
        key,
        slot: { owner: entry.owner, sort: entry.sort, tag: entry.tag, doc, text: undefined },
      });
      body += `["${table}",${JSON.stringify(key)},${JSON.stringify(entry.owner)},${entry.sort},${JSON.stringify(entry.tag)},${JSON.stringify(doc)}]\n`;
    }
    const infos: LineInfo[] = [];
    for (let j = 0; j < lines.length; j++) {
      const { ts_ms, event, actor, run_id, tool } = records[j]!;
      const length = Buffer.byteLength(lines[j]!) + 1;
      size += length;
      infos.push({ length, ts_ms, event, actor, run_id, tool });
    }
    const unit: UnitBlock = { kind: "unit", head, size, lines: infos, puts, end: i === committed.length - 1 };
    units.push(unit);
    const sealed = seal(unitFields(unit), body === "" ? crc : crc32(body, crc));
    crc = sealed.crc;
    text += body + sealed.text;
  }
  return { units, text, tip: { size, crc } };
}

/** Any other item, or a unit without documents, as one line. */
export function encodeItem(item: JournalItem, crc: number): { text: string; crc: number } {
  switch (item.kind) {
    case "unit":
      return seal(unitFields(item), crc);
    case "header":
      return seal(`"journal":1,"generation":${item.generation},${standing(item)}`, crc);
    case "next":
      return seal(`"next":${item.generation}`, crc);
    case "void":
      return seal(`"void":${item.from},${standing(item)}`, crc);
  }
}

function unitFields(unit: UnitBlock): string {
  const lines = unit.lines.map((l) => [l.length, l.ts_ms, l.event, l.actor, l.run_id ?? 0, l.tool ?? 0]);
  return `${standing(unit)},"lines":${JSON.stringify(lines)}${unit.end ? ',"end":1' : ""}`;
}

function standing(at: { head: Head; size: number }): string {
  return `"records":${at.head.records},"head":"${at.head.hash}","size":${at.size}`;
}

function seal(fields: string, seed: number): { text: string; crc: number } {
  const body = `${fields}}\n`;
  const crc = crc32(body, seed);
  return { text: `${CRC_PREFIX}${crc.toString(16).padStart(8, "0")}",${body}`, crc };
}

export interface ParsedJournal {
  items: Placed[];
  /** Behind the last good item. */
  end: number;
  crc: number;
  /**
   * `torn`: what follows has no whole seal and ends in the middle or in zeros, as a crash leaves it.
   * `broken`: a whole line that does not verify.
   */
  rest: "none" | "torn" | "broken";
}

/** Reads items from bytes that start at `base` in their journal, behind a block whose checksum was `crc`. */
export function parseJournal(bytes: Buffer, base: number, crc: number): ParsedJournal {
  const items: Placed[] = [];
  let start = 0;
  let seed = crc;
  let puts: Put[] = [];
  let at = 0;
  const stop = (rest: ParsedJournal["rest"]): ParsedJournal => ({
    items,
    end: base + start,
    crc: seed,
    rest,
  });
  while (at < bytes.length) {
    const to = bytes.indexOf(0x0a, at);
    if (to < 0) return stop("torn");
    if (bytes[at] === 0x5b) {
      const put = parsePut(bytes.toString("utf8", at, to));
      if (put === undefined) return stop(endsInZeros(bytes, at) ? "torn" : "broken");
      puts.push(put);
      at = to + 1;
      continue;
    }
    const sealedFrom = at + SEALED_FROM;
    const sum =
      sealedFrom < to
        ? crc32(bytes.subarray(sealedFrom, to + 1), crc32(bytes.subarray(start, at), seed))
        : -1;
    const text = bytes.toString("utf8", at, to);
    if (
      !text.startsWith(CRC_PREFIX) ||
      Number.parseInt(text.slice(CRC_PREFIX.length, CRC_PREFIX.length + 8), 16) !== sum
    ) {
      return stop(endsInZeros(bytes, start) ? "torn" : "broken");
    }
    const item = parseSeal(text, puts);
    if (item === undefined) return stop("broken");
    items.push(Object.assign(item, { from: base + start, to: base + to + 1, crc: sum }));
    seed = sum;
    start = at = to + 1;
    puts = [];
  }
  return stop(at > start ? "torn" : "none");
}

/** A power cut may leave a file longer than what reached it; the gap reads as zeros, up to its end. */
export function endsInZeros(bytes: Uint8Array, from: number): boolean {
  return bytes.length > from && bytes[bytes.length - 1] === 0;
}

const STRING = String.raw`"(?:[^"\\]|\\.)*"`;
const PUT = new RegExp(`^\\["([a-z_]+)",(${STRING})(?:\\]$|,(${STRING}),(-?[0-9.eE+-]+),(${STRING}),)`);

function parsePut(line: string): Put | undefined {
  const match = PUT.exec(line);
  if (match === null || !Object.hasOwn(INDEX, match[1]!)) return undefined;
  const table = match[1] as TableName;
  const key = unquote(match[2]!);
  if (match[3] === undefined) return { table, key, slot: null };
  const slot = {
    owner: unquote(match[3]),
    sort: Number(match[4]),
    tag: unquote(match[5]!),
    doc: undefined,
    text: line.slice(match[0].length, -1),
  };
  return { table, key, slot };
}

function unquote(quoted: string): string {
  return quoted.includes("\\") ? (JSON.parse(quoted) as string) : quoted.slice(1, -1);
}

interface SealFields {
  records?: number;
  head?: string;
  size?: number;
  lines?: [number, number, string, string, string | 0, string | 0][];
  end?: 1;
  journal?: number;
  generation?: number;
  next?: number;
  void?: number;
}

function parseSeal(text: string, puts: Put[]): JournalItem | undefined {
  let fields: SealFields;
  try {
    fields = JSON.parse(text) as SealFields;
  } catch {
    return undefined;
  }
  if (fields.next !== undefined) return { kind: "next", generation: fields.next };
  if (fields.records === undefined || fields.head === undefined || fields.size === undefined)
    return undefined;
  const at = { head: { records: fields.records, hash: fields.head }, size: fields.size };
  if (fields.void !== undefined) return { kind: "void", from: fields.void, ...at };
  if (fields.journal !== undefined) {
    return fields.journal === 1 ? { kind: "header", generation: fields.generation ?? 0, ...at } : undefined;
  }
  const lines = (fields.lines ?? []).map(([length, ts_ms, event, actor, run_id, tool]) => ({
    length,
    ts_ms,
    event,
    actor,
    run_id: run_id === 0 ? undefined : run_id,
    tool: tool === 0 ? undefined : tool,
  }));
  return { kind: "unit", ...at, lines, puts, end: fields.end === 1 };
}

/** The units that count: those that no later item of the same journal takes back. */
export function resolveVoids(items: readonly Placed[]): Placed<UnitBlock>[] {
  const units: Placed<UnitBlock>[] = [];
  for (const item of items) {
    if (item.kind === "unit") units.push(item);
    if (item.kind === "void")
      while (units.length > 0 && units[units.length - 1]!.from >= item.from) units.pop();
  }
  return units;
}
