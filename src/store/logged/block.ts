/**
 * The journal's text. A unit of work is one block: a line for each document it changed, then one line
 * that seals it, with where the ledger stands behind it and a checksum that carries on from the block
 * before. Every line is JSON. A block counts only if its seal is whole and its checksum right, so a
 * torn, missing, doubled or altered block cannot be mistaken for a good one.
 */
import { crc32 } from "node:zlib";
import type { Head } from "../../ledger/record.ts";
import { INDEX, type IndexEntry, type TableName, type Tables } from "../../port/tables.ts";
import type { CommittedUnit } from "../batch.ts";
import { docText, quoted } from "../doc-text.ts";

export type AnyDoc = Tables[TableName];

/** A document as the journal has it; parsed when it is asked for. */
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
  /** Null where an earlier version wrote the journal, which did not say. */
  tenant: string | null | undefined;
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
  /** How far the writer knew ledger and journal to be durable when it wrote this. */
  synced?: Synced | undefined;
}

export interface Synced {
  ledger: number;
  journal: number;
}

export type JournalItem =
  | UnitBlock
  /** Opens a journal: which one it is and where the ledger stood. */
  | { kind: "header"; generation: number; head: Head; size: number }
  /** Closes a journal: what follows is in that one. */
  | { kind: "next"; generation: number };

export type Placed<T extends JournalItem = JournalItem> = T & { from: number; to: number; crc: number };

/** Where a writer carries on. */
interface JournalTip {
  size: number;
  crc: number;
}

interface EncodedBatch {
  units: UnitBlock[];
  text: string;
  tip: JournalTip;
}

export const CRC_PREFIX = '{"crc":"';
/** Where in its line the part begins that a seal's checksum covers. */
export const SEALED_FROM = CRC_PREFIX.length + 8 + 2;

export function docOf(slot: Slot): AnyDoc {
  if (slot.doc === undefined) {
    slot.doc = JSON.parse(slot.text!) as AnyDoc;
    slot.text = undefined;
  }
  return slot.doc;
}

export function slotText(slot: Slot): string {
  return slot.text ?? JSON.stringify(slot.doc);
}

/** The batch as journal text, and as what this process will remember of it. */
export function encodeBatch(
  committed: readonly CommittedUnit[],
  tip: JournalTip,
  synced?: Synced,
): EncodedBatch {
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
        body += `["${table}",${quoted(key)}]\n`;
        continue;
      }
      const entry = (INDEX[table] as (doc: AnyDoc) => IndexEntry)(doc);
      puts.push({
        table,
        key,
        slot: { owner: entry.owner, sort: entry.sort, tag: entry.tag, doc, text: undefined },
      });
      body += `["${table}",${quoted(key)},${quoted(entry.owner)},${entry.sort},${quoted(entry.tag)},${docText(table, doc)}]\n`;
    }
    const infos: LineInfo[] = [];
    for (let j = 0; j < lines.length; j++) {
      const { ts_ms, event, actor, run_id, tool, tenant } = records[j]!;
      const length = Buffer.byteLength(lines[j]!) + 1;
      size += length;
      infos.push({ length, ts_ms, event, actor, run_id, tool, tenant });
    }
    const end = i === committed.length - 1;
    const unit: UnitBlock = {
      kind: "unit",
      head,
      size,
      lines: infos,
      puts,
      end,
      synced: end ? synced : undefined,
    };
    units.push(unit);
    const sealed = seal(unitFields(unit), crc, body);
    crc = sealed.crc;
    text += sealed.text;
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
  }
}

function unitFields(unit: UnitBlock): string {
  let lines = "";
  for (const { length, ts_ms, event, actor, run_id, tool, tenant } of unit.lines) {
    const of = `${orNone(run_id)},${orNone(tool)}${tenant === null ? "" : `,${orNone(tenant)}`}`;
    lines += `${lines === "" ? "" : ","}[${length},${ts_ms},${quoted(event)},${quoted(actor)},${of}]`;
  }
  const synced = unit.synced === undefined ? "" : `,"synced":[${unit.synced.ledger},${unit.synced.journal}]`;
  return `${standing(unit)},"lines":[${lines}]${synced}${unit.end ? ',"end":1' : ""}`;
}

const orNone = (text: string | undefined): string => (text === undefined ? "0" : quoted(text));

function standing(at: { head: Head; size: number }): string {
  return `"records":${at.head.records},"head":"${at.head.hash}","size":${at.size}`;
}

export function hexCrc(crc: number): string {
  return crc.toString(16).padStart(8, "0");
}

/** The lines of documents, and the line behind them; its checksum covers both, but for its own spelling. */
function seal(fields: string, seed: number, documents = ""): { text: string; crc: number } {
  const crc = crc32(`${documents}${fields}}\n`, seed);
  return { text: `${documents}${CRC_PREFIX}${hexCrc(crc)}",${fields}}\n`, crc };
}
