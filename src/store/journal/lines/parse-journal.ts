/** Parses the journal's text as far as it is intact. */
import { isAscii } from "node:buffer";
import { crc32 } from "node:zlib";
import { TABLE_NAMES, type TableName } from "../../../govern/port/tables.ts";
import {
  CRC_PREFIX,
  hexCrc,
  type JournalItem,
  type JournalPut,
  SEALED_FROM,
  type UnitBlock,
  type WithOffset,
} from "./block.ts";

export interface ParsedJournal {
  items: WithOffset[];
  /** The offset after the last valid item. */
  end: number;
  crc: number;
  /**
   * `torn`: the rest has no complete seal and ends in the middle or in zeros, as after a crash. `broken`: a complete
   * line does not verify.
   */
  rest: "none" | "torn" | "broken";
}

/** Parses items from bytes at offset `base` of their journal, after a block with the checksum `crc`. */
export function parseJournal(bytes: Buffer, base: number, crc: number): ParsedJournal {
  const items: WithOffset[] = [];
  const { endOf, lineOf } = linesOf(bytes);
  let start = 0;
  let seed = crc;
  let at = 0;
  /** The ends of the document lines since the last seal. */
  let ends: number[] = [];
  const stop = (rest: ParsedJournal["rest"]): ParsedJournal => ({
    items,
    end: base + start,
    crc: seed,
    rest,
  });
  while (at < bytes.length) {
    const to = endOf(at);
    if (to < 0) return stop("torn");
    // Document lines count only once the seal after them has been verified.
    if (bytes[at] === OPENING_BRACKET) {
      ends.push(to);
      at = to + 1;
      continue;
    }
    const seal = lineOf(at, to);
    const sum = crc32(bytes.subarray(at + SEALED_FROM, to + 1), crc32(bytes.subarray(start, at), seed));
    if (seal.slice(0, SEALED_FROM) !== `${CRC_PREFIX}${hexCrc(sum)}",`)
      return stop(unreadable(bytes, start, base));
    const puts = parsePuts(start, ends, lineOf);
    const place = { from: base + start, to: base + to + 1, crc: sum };
    const item = puts === undefined ? undefined : parseSeal(seal, puts, place);
    if (item === undefined) return stop("broken");
    items.push(item);
    seed = sum;
    start = at = to + 1;
    ends = [];
  }
  return stop(at > start ? "torn" : "none");
}

const OPENING_BRACKET = 0x5b;
const OPENING_BRACE = 0x7b;

interface Lines {
  /** Returns the offset of the line break at the end of the line. */
  endOf(at: number): number;
  lineOf(from: number, to: number): string;
}

/** Splits bytes into lines. In pure ASCII, text and byte offsets are equal, so one decoded text serves all lines. */
function linesOf(bytes: Buffer): Lines {
  if (!isAscii(bytes))
    return {
      endOf: (at) => bytes.indexOf(0x0a, at),
      lineOf: (from, to) => bytes.toString("utf8", from, to),
    };
  const text = bytes.toString("latin1");
  return { endOf: (at) => text.indexOf("\n", at), lineOf: (from, to) => text.slice(from, to) };
}

function parsePuts(from: number, ends: readonly number[], lineOf: Lines["lineOf"]): JournalPut[] | undefined {
  const puts: JournalPut[] = [];
  let at = from;
  for (const to of ends) {
    const put = plainPut(lineOf(at, to));
    if (put === undefined) return undefined;
    puts.push(put);
    at = to + 1;
  }
  return puts;
}

const SECTOR = 512;

/**
 * Checks for a gap in the writes after `from`. A power cut keeps or loses whole sectors of unsynced data. A lost sector
 * reads as zeros to its end, and valid text contains no zero.
 */
export function hasLostSector(bytes: Uint8Array, from: number, base: number): boolean {
  for (let at = bytes.indexOf(0, from); at >= 0; at = bytes.indexOf(0, at)) {
    while (at < bytes.length && bytes[at] === 0) at++;
    if (at === bytes.length || (base + at) % SECTOR === 0) return true;
  }
  return false;
}

const SYNCED = /"synced":\[\d+,(\d+)\]/g;

/** Classifies a block that does not verify: lost before it was durable, or damaged later. */
function unreadable(bytes: Buffer, start: number, base: number): "torn" | "broken" {
  if (!hasLostSector(bytes, start, base)) return "broken";
  // If a later write knew the block to be durable, a power cut cannot have removed it.
  for (const [, journal] of bytes.toString("latin1", start).matchAll(SYNCED)) {
    if (Number(journal) > base + start) return "broken";
  }
  return "torn";
}

const STRING = String.raw`"(?:[^"\\]|\\.)*"`;
const WHOLE = `(${STRING}),(-?[0-9.eE+-]+),(${STRING}),`;
const CHANGE = `(${STRING}),(?=\\{)`;
const PUT = new RegExp(`^\\["([a-z_]+)",(${STRING})(?:\\]$|,(?:${WHOLE}|${CHANGE}))`);

const TABLES = new Map<string, TableName>(TABLE_NAMES.map((name) => [name, name]));

/** Parses a document line whose key, owner and tag have no escapes, as almost all do, by the surrounding quotes. */
function plainPut(line: string): JournalPut | undefined {
  const key_from = line.indexOf('","', 2) + 3;
  const key_to = line.indexOf('","', key_from);
  const owner_to = line.indexOf('",', key_to + 3);
  if (line.charCodeAt(owner_to + 2) === OPENING_BRACE) return plainChange(line, key_from, key_to, owner_to);
  const sort_to = line.indexOf(',"', owner_to + 2);
  const tag_to = line.indexOf('",', sort_to + 2);
  const slash = line.indexOf("\\");
  const table = TABLES.get(line.slice(2, key_from - 3));
  const sort = Number(line.slice(owner_to + 2, sort_to));
  if (table === undefined || key_to < 0 || owner_to < 0 || sort_to < 0 || tag_to < 0) return parsePut(line);
  if ((slash >= 0 && slash < tag_to) || !Number.isFinite(sort)) return parsePut(line);
  const slot = {
    owner: line.slice(key_to + 3, owner_to),
    sort,
    tag: line.slice(sort_to + 2, tag_to),
    doc: undefined,
    text: line.slice(tag_to + 2, -1),
    members: undefined,
  };
  return { table, key: line.slice(key_from, key_to), slot };
}

/** Parses a change line, whose tag is at the position of the owner in a full document. */
function plainChange(line: string, key_from: number, key_to: number, tag_to: number): JournalPut | undefined {
  const slash = line.indexOf("\\");
  const table = TABLES.get(line.slice(2, key_from - 3));
  if (table === undefined || key_to < 0 || (slash >= 0 && slash < tag_to)) return parsePut(line);
  const slot = { tag: line.slice(key_to + 3, tag_to), members: line.slice(tag_to + 2, -1) };
  return { table, key: line.slice(key_from, key_to), slot };
}

function parsePut(line: string): JournalPut | undefined {
  const match = PUT.exec(line);
  const table = match === null ? undefined : TABLES.get(match[1]!);
  if (match === null || table === undefined) return undefined;
  const key = unquote(match[2]!);
  const rest = line.slice(match[0].length, -1);
  if (match[6] !== undefined) return { table, key, slot: { tag: unquote(match[6]), members: rest } };
  if (match[3] === undefined) return { table, key, slot: null };
  const slot = {
    owner: unquote(match[3]),
    sort: Number(match[4]),
    tag: unquote(match[5]!),
    doc: undefined,
    text: rest,
    members: undefined,
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
  lines?: [number, number, string, string, string | 0, string | 0, (string | 0)?][];
  synced?: [number, number];
  end?: 1;
  journal?: number;
  generation?: number;
  next?: number;
}

const VALUE = String.raw`(?:"([^"\\]*)"|0)`;
const HEAD_FIELDS = String.raw`"records":(\d+),"head":"([0-9a-f]{64})","size":(\d+)`;
const LINE = String.raw`\[(\d+),(\d+),"([^"\\]*)","([^"\\]*)",${VALUE},${VALUE},${VALUE}\]`;
const END = String.raw`(?:,"synced":\[(\d+),(\d+)\])?(,"end":1)?`;
/** Matches the seal of a unit with one record and no escapes, as almost all are. Parsing it takes half the time. */
const PLAIN_SEAL = new RegExp(`^.{${SEALED_FROM}}${HEAD_FIELDS},"lines":\\[${LINE}\\]${END}\\}$`);

interface Place {
  from: number;
  to: number;
  crc: number;
}

function parseSeal(text: string, puts: JournalPut[], place: Place): WithOffset | undefined {
  const match = PLAIN_SEAL.exec(text);
  if (match === null) {
    const item = parseAnySeal(text, puts);
    return item && Object.assign(item, place);
  }
  const [, records, hash, size, length, ts_ms, event, actor, run_id, tool, tenant, ledger, journal, end] =
    match;
  return {
    kind: "unit",
    head: { records: Number(records), hash: hash! },
    size: Number(size),
    lines: [
      { length: Number(length), ts_ms: Number(ts_ms), event: event!, actor: actor!, run_id, tool, tenant },
    ],
    puts,
    end: end !== undefined,
    synced: ledger === undefined ? undefined : { ledger: Number(ledger), journal: Number(journal) },
    from: place.from,
    to: place.to,
    crc: place.crc,
  };
}

function parseAnySeal(text: string, puts: JournalPut[]): JournalItem | undefined {
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
  if (fields.journal !== undefined) {
    return { kind: "header", format: fields.journal, generation: fields.generation ?? 0, ...at };
  }
  const lines = (fields.lines ?? []).map(([length, ts_ms, event, actor, run_id, tool, tenant]) => ({
    length,
    ts_ms,
    event,
    actor,
    run_id: run_id === 0 ? undefined : run_id,
    tool: tool === 0 ? undefined : tool,
    tenant: tenant === 0 ? undefined : (tenant ?? null),
  }));
  const synced =
    fields.synced === undefined ? undefined : { ledger: fields.synced[0], journal: fields.synced[1] };
  return { kind: "unit", ...at, lines, puts, end: fields.end === 1, synced };
}

export function unitsOf(items: readonly WithOffset[]): WithOffset<UnitBlock>[] {
  return items.filter((item): item is WithOffset<UnitBlock> => item.kind === "unit");
}
