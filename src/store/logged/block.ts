/**
 * The journal's text. A unit of work is one block: a line for each document it changed, then one line
 * that seals it, with where the ledger stands behind it and a checksum that carries on from the block
 * before. Every line is JSON. A block counts only if its seal is whole and its checksum right, so a
 * torn, missing, doubled or altered block cannot be mistaken for a good one. A document that the same journal has
 * told before is told by what became of its last members, where nothing else of it changed.
 */
import { crc32 } from "node:zlib";
import { quoted } from "../../kernel/canonical.ts";
import { SvcError } from "../../kernel/errors.ts";
import type { Head } from "../../ledger/record.ts";
import { INDEX, type IndexEntry, type TableName, type Tables } from "../../port/tables.ts";
import type { CommittedUnit, DocChange } from "../batch.ts";
import { changedText, docText, withChange } from "../doc-text.ts";

export type AnyDoc = Tables[TableName];

/** A document as the journal has it; parsed when it is asked for. */
export interface Slot extends IndexEntry {
  doc: AnyDoc | undefined;
  text: string | undefined;
  /** What stands in place of the text's last members; the changes of a table all replace the same. */
  members: string | undefined;
}

/** What became of a document that the journal has told before: its tag, and its last members as an object's text. */
export interface Change {
  tag: string;
  members: string;
}

export interface Put {
  table: TableName;
  key: string;
  /** Null for a deletion. */
  slot: Slot | Change | null;
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
  | { kind: "header"; format: number; generation: number; head: Head; size: number }
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

/** In the first journals every document was told whole, and they are carried on with so. */
export const JOURNAL_FORMAT = 2;
export const CHANGES_SINCE = 2;

/** What the journal has said of a document so far; undefined where nothing. */
export type ToldSoFar = (table: TableName, key: string) => Slot | null | undefined;

export const CRC_PREFIX = '{"crc":"';
/** Where in its line the part begins that a seal's checksum covers. */
export const SEALED_FROM = CRC_PREFIX.length + 8 + 2;

export function docOf(slot: Slot): AnyDoc {
  if (slot.doc === undefined) {
    slot.doc = JSON.parse(slotText(slot)) as AnyDoc;
    slot.text = slot.members = undefined;
  }
  return slot.doc;
}

/** The document as the change leaves it: as a text still, or parsed still. */
export function changed(before: Slot | null | undefined, { tag, members }: Change): Slot {
  if (!before) throw notTold();
  const { owner, sort, text } = before;
  if (text !== undefined) return { owner, sort, tag, doc: undefined, text, members };
  const doc = Object.assign({}, before.doc, JSON.parse(members)) as AnyDoc;
  return { owner, sort, tag, doc, text: undefined, members: undefined };
}

export function slotText({ text, members, doc }: Slot): string {
  if (text === undefined) return JSON.stringify(doc);
  if (members === undefined) return text;
  const now = withChange(text, members);
  if (now === undefined) throw notTold();
  return now;
}

function notTold(): SvcError {
  return new SvcError("corrupt", "the journal tells of a change in what it does not have");
}

/** The batch as journal text, and as what this process will remember of it. Without `told` documents are told whole. */
export function encodeBatch(
  committed: readonly CommittedUnit[],
  tip: JournalTip,
  synced?: Synced,
  told?: ToldSoFar,
): EncodedBatch {
  const units: UnitBlock[] = [];
  let { size, crc } = tip;
  let text = "";
  for (let i = 0; i < committed.length; i++) {
    const { head, lines, records, changes } = committed[i]!;
    const puts: Put[] = [];
    let body = "";
    for (const change of changes) {
      const { table, key, doc } = change;
      if (doc === undefined) {
        puts.push({ table, key, slot: null });
        body += `["${table}",${quoted(key)}]\n`;
        continue;
      }
      const entry = (INDEX[table] as (doc: AnyDoc) => IndexEntry)(doc);
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
      const members = told && changeOf(change, told);
      body +=
        members === undefined
          ? `["${table}",${quoted(key)},${quoted(entry.owner)},${entry.sort},${quoted(entry.tag)},${docText(table, doc)}]\n`
          : `["${table}",${quoted(key)},${quoted(entry.tag)},${members}]\n`;
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

/** What became of a document that the journal will have told before this change; undefined where it is told whole. */
function changeOf({ table, key, doc, before }: DocChange, told: ToldSoFar): string | undefined {
  const slot = before === undefined ? told(table, key) : null;
  const known = before === undefined ? slot && docOf(slot) : before.doc;
  return known && doc ? changedText(table, known, doc) : undefined;
}

/** Any other item, or a unit without documents, as one line. */
export function encodeItem(item: JournalItem, crc: number): { text: string; crc: number } {
  switch (item.kind) {
    case "unit":
      return seal(unitFields(item), crc);
    case "header":
      return seal(`"journal":${item.format},"generation":${item.generation},${standing(item)}`, crc);
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
  // One after the other: a text that was put together of parts is made one piece here, and stays so.
  const end = `${fields}}\n`;
  const crc = crc32(end, crc32(documents, seed));
  return { text: `${documents}${CRC_PREFIX}${hexCrc(crc)}",${end}`, crc };
}
