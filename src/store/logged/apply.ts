/**
 * Moves the checkpoint from the end of one journal to the end of the next, in one transaction: it has
 * happened whole or not at all, and doing it twice, or from two processes, does it once. Runs in a
 * thread of its own, from what is on disk, so that no decision waits for it.
 */
import { SvcError } from "../../kernel/errors.ts";
import type { Head } from "../../ledger/record.ts";
import type { TableName } from "../../port/tables.ts";
import { toText } from "../key-text.ts";
import { type Slot, slotText, type UnitBlock } from "./block.ts";
import { type Base, readBase, writeBase } from "./checkpoint.ts";
import type { Database, PreparedStatement } from "./connection.ts";
import { Overlay } from "./overlay.ts";
import { tableOf } from "./schema.ts";
import { writeSegments } from "./segments.ts";

/** A closed journal: its units, and where it left the ledger. */
export interface ClosedJournal {
  generation: number;
  units: readonly UnitBlock[];
  head: Head;
  size: number;
  crc: number;
}

export function applyJournal(
  db: Database,
  store: string,
  generation: number,
  read: () => ClosedJournal,
): Base {
  db.exec("BEGIN IMMEDIATE");
  try {
    const base = readBase(db)!;
    if (base.generation >= generation) {
      db.exec("ROLLBACK");
      return base;
    }
    if (base.generation !== generation - 1) {
      throw new SvcError(
        "corrupt",
        `journal ${generation} does not follow the checkpoint (${base.generation})`,
      );
    }
    const next = take(db, base, read());
    writeBase(db, store, next);
    db.exec("COMMIT");
    return next;
  } catch (error) {
    if (db.isTransaction) db.exec("ROLLBACK");
    throw error;
  }
}

function take(db: Database, base: Base, journal: ClosedJournal): Base {
  const overlay = new Overlay(journal.generation);
  const lines = journal.units.flatMap((unit) => unit.lines);
  for (const unit of journal.units) for (const put of unit.puts) overlay.take(put);
  const size = lines.reduce((sum, { length }) => sum + length, base.size);
  if (size !== journal.size || base.head.records + lines.length !== journal.head.records) {
    throw new SvcError(
      "corrupt",
      `journal ${journal.generation} does not add up to the ledger position it names`,
    );
  }
  const byTable = groupByTable(overlay);
  for (const [table, docs] of byTable) writeDocuments(db, table, docs);
  writeSegments(db, base.head.records, base.size, lines);
  const events = { ...base.events };
  for (const { event } of lines) events[event] = (events[event] ?? 0) + 1;
  const { generation, head, crc } = journal;
  return { generation, head, size, crc, events };
}

type Doc = [table: TableName, key: string, slot: Slot | null];

function groupByTable(overlay: Overlay): Map<TableName, Doc[]> {
  const groups = new Map<TableName, Doc[]>();
  for (const doc of overlay) {
    const group = groups.get(doc[0]);
    if (group === undefined) groups.set(doc[0], [doc]);
    else group.push(doc);
  }
  return groups;
}

function writeDocuments(db: Database, table: TableName, docs: Doc[]): void {
  const writer = new DocumentWriter(db, tableOf(table));
  const remove = db.prepare(`DELETE FROM ${tableOf(table)} WHERE key = ?`);
  // In the order of the tree, so that neighbours are written together.
  docs.sort(([, a], [, b]) => (a < b ? -1 : a > b ? 1 : 0));
  for (const [, key, slot] of docs) {
    if (slot === null) remove.run(toText(key));
    else writer.write(toText(key), slot);
  }
}

class DocumentWriter {
  private readonly insert: PreparedStatement;
  private readonly update: PreparedStatement;
  private readonly replace: PreparedStatement;
  /** Whether the last document was new: its neighbours in the tree are likely to be, too. */
  private isNew = false;

  constructor(db: Database, name: string) {
    const insert = `INSERT INTO ${name} (key, owner, sort, tag, doc) VALUES (?, ?, ?, ?, ?) ON CONFLICT (key)`;
    this.insert = db.prepare(`${insert} DO NOTHING`);
    // Most changes leave owner, sort and tag alone; then no index has to be touched.
    this.update = db.prepare(
      `UPDATE ${name} SET doc = ? WHERE key = ? AND owner = ? AND sort = ? AND tag = ?`,
    );
    this.replace = db.prepare(
      `${insert} DO UPDATE SET owner = excluded.owner, sort = excluded.sort, tag = excluded.tag, doc = excluded.doc`,
    );
  }

  write(key: string, slot: Slot): void {
    const text = slotText(slot);
    const owner = toText(slot.owner);
    const tag = toText(slot.tag);
    if (this.isNew && this.insert.run(key, owner, slot.sort, tag, text).changes > 0) return;
    this.isNew = false;
    if (this.update.run(text, key, owner, slot.sort, tag).changes > 0) return;
    this.isNew = true;
    this.replace.run(key, owner, slot.sort, tag, text);
  }
}
