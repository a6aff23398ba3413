/**
 * The journal's text format. A unit of work is one block: a line per changed document, then a seal line with the ledger
 * position after the unit and a checksum that continues from the previous block. Every line is JSON. A block counts
 * only if its seal is complete and its checksum correct, so a torn, missing, duplicated or altered block never passes
 * for a valid one. If only the last members of a document changed since its last mention in the journal, the line has
 * just those.
 */
import { crc32 } from "node:zlib";
import { type IndexEntry, TABLE_INDEX, type TableDocs, type TableName } from "../../../govern/port/tables.ts";
import { SvcError } from "../../../kernel/errors.ts";
import { quoteJsonString } from "../../../kernel/json/canonical.ts";
import type { LedgerHead } from "../../../ledger/record.ts";
import type { CommittedUnit, DocChange } from "../../batch.ts";
import { changedText, docText, withChange } from "../../doc-text.ts";

export type AnyDoc = TableDocs[TableName];

/** A document from the journal, parsed on first use. */
export interface JournalDoc extends IndexEntry {
  doc: AnyDoc | undefined;
  text: string | undefined;
  /** Replaces the last members of the text. All changes of a table replace the same members. */
  members: string | undefined;
}

/** A change of a document that the journal already contains: its tag, and its last members as JSON text. */
export interface MemberChange {
  tag: string;
  members: string;
}

export interface JournalPut {
  table: TableName;
  key: string;
  /** Null for a deletion. */
  slot: JournalDoc | MemberChange | null;
}

/** The facts of a ledger line that a search needs, without reading the line. */
export interface LineInfo {
  /** In bytes, including the line break. */
  length: number;
  ts_ms: number;
  event: string;
  actor: string;
  run_id: string | undefined;
  tool: string | undefined;
  /** Null in journals of older versions, which did not store it. */
  tenant: string | null | undefined;
}

export interface UnitBlock {
  kind: "unit";
  /** The ledger head after the unit. */
  head: LedgerHead;
  size: number;
  lines: LineInfo[];
  puts: JournalPut[];
  /** Marks the last unit of a batch. Readers take whole batches only. */
  end: boolean;
  /** How far the writer knew ledger and journal to be durable at this write. */
  synced?: SyncedSizes | undefined;
}

export interface SyncedSizes {
  ledger: number;
  journal: number;
}

export type JournalItem =
  | UnitBlock
  /** Opens a journal: its generation, and the ledger position at its start. */
  | { kind: "header"; format: number; generation: number; head: LedgerHead; size: number }
  /** Closes a journal and names the next one. */
  | { kind: "next"; generation: number };

export type WithOffset<T extends JournalItem = JournalItem> = T & { from: number; to: number; crc: number };

/** The position at which a writer continues. */
interface JournalTip {
  size: number;
  crc: number;
}

interface EncodedBatch {
  units: UnitBlock[];
  text: string;
  tip: JournalTip;
}

/** Format 1 journals store every document in full, and are continued that way. */
export const JOURNAL_FORMAT = 2;
export const CHANGES_SINCE = 2;

/** Returns a document as this journal last stored it, or undefined if it has not. */
export type JournaledDocs = (table: TableName, key: string) => JournalDoc | null | undefined;

export const CRC_PREFIX = '{"crc":"';
/** The offset in a seal line from which its checksum applies. */
export const SEALED_FROM = CRC_PREFIX.length + 8 + 2;

export function parseSlot(slot: JournalDoc): AnyDoc {
  if (slot.doc === undefined) {
    slot.doc = JSON.parse(slotText(slot)) as AnyDoc;
    slot.text = slot.members = undefined;
  }
  return slot.doc;
}

/** Applies a change to a document, as text or parsed, whichever the document is. */
export function applyMemberChange(
  before: JournalDoc | null | undefined,
  { tag, members }: MemberChange,
): JournalDoc {
  if (!before) throw notTold();
  const { owner, sort, text } = before;
  if (text !== undefined) return { owner, sort, tag, doc: undefined, text, members };
  const doc = Object.assign({}, before.doc, JSON.parse(members)) as AnyDoc;
  return { owner, sort, tag, doc, text: undefined, members: undefined };
}

export function slotText({ text, members, doc }: JournalDoc): string {
  if (text === undefined) return JSON.stringify(doc);
  if (members === undefined) return text;
  const now = withChange(text, members);
  if (now === undefined) throw notTold();
  return now;
}

function notTold(): SvcError {
  return new SvcError("corrupt", "the journal tells of a change in what it does not have");
}

/**
 * Encodes a batch as journal text, together with its in-memory form. Stores documents in full if the journal's content
 * is not given.
 */
export function encodeBatch(
  committed: readonly CommittedUnit[],
  tip: JournalTip,
  synced?: SyncedSizes,
  journaled?: JournaledDocs,
): EncodedBatch {
  const units: UnitBlock[] = [];
  let { size, crc } = tip;
  let text = "";
  for (let i = 0; i < committed.length; i++) {
    const { head, lines, records, changes } = committed[i]!;
    const puts: JournalPut[] = [];
    let body = "";
    for (const change of changes) {
      const { table, key, doc } = change;
      if (doc === undefined) {
        puts.push({ table, key, slot: null });
        body += `["${table}",${quoteJsonString(key)}]\n`;
        continue;
      }
      const entry = (TABLE_INDEX[table] as (doc: AnyDoc) => IndexEntry)(doc);
      puts.push({
        table,
        key,
        slot: {
          owner: entry.owner,
          sort: entry.sort,
          tag: entry.tag,
          doc,
          text: undefined,
          members: undefined,
        },
      });
      const members = journaled && changeOf(change, journaled);
      body +=
        members === undefined
          ? `["${table}",${quoteJsonString(key)},${quoteJsonString(entry.owner)},${entry.sort},${quoteJsonString(entry.tag)},${docText(table, doc)}]\n`
          : `["${table}",${quoteJsonString(key)},${quoteJsonString(entry.tag)},${members}]\n`;
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

/**
 * Returns the changed members of a document that the journal already contains, or undefined if it must be stored in
 * full.
 */
function changeOf({ table, key, doc, before }: DocChange, journaled: JournaledDocs): string | undefined {
  const slot = before === undefined ? journaled(table, key) : null;
  const known = before === undefined ? slot && parseSlot(slot) : before.doc;
  return known && doc ? changedText(table, known, doc) : undefined;
}

/** Encodes any other item, or a unit without documents, as one line. */
export function encodeItem(item: JournalItem, crc: number): { text: string; crc: number } {
  switch (item.kind) {
    case "unit":
      return seal(unitFields(item), crc);
    case "header":
      return seal(`"journal":${item.format},"generation":${item.generation},${headFields(item)}`, crc);
    case "next":
      return seal(`"next":${item.generation}`, crc);
  }
}

function unitFields(unit: UnitBlock): string {
  let lines = "";
  for (const { length, ts_ms, event, actor, run_id, tool, tenant } of unit.lines) {
    const of = `${orNone(run_id)},${orNone(tool)}${tenant === null ? "" : `,${orNone(tenant)}`}`;
    lines += `${lines === "" ? "" : ","}[${length},${ts_ms},${quoteJsonString(event)},${quoteJsonString(actor)},${of}]`;
  }
  const synced = unit.synced === undefined ? "" : `,"synced":[${unit.synced.ledger},${unit.synced.journal}]`;
  return `${headFields(unit)},"lines":[${lines}]${synced}${unit.end ? ',"end":1' : ""}`;
}

const orNone = (text: string | undefined): string => (text === undefined ? "0" : quoteJsonString(text));

function headFields(at: { head: LedgerHead; size: number }): string {
  return `"records":${at.head.records},"head":"${at.head.hash}","size":${at.size}`;
}

export function hexCrc(crc: number): string {
  return crc.toString(16).padStart(8, "0");
}

/** Joins the document lines and the seal line. The checksum covers both, except its own digits. */
function seal(fields: string, seed: number, documents = ""): { text: string; crc: number } {
  const end = `${fields}}\n`;
  const crc = crc32(documents + end, seed);
  return { text: `${documents}${CRC_PREFIX}${hexCrc(crc)}",${end}`, crc };
}
