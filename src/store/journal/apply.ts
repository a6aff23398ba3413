/**
 * Moves the checkpoint from the end of one journal to the end of the next, in one transaction: atomic, and idempotent
 * even across processes. Runs in its own thread from the files on disk, so that no decision waits for it.
 */
import type { TableName } from "../../govern/port/tables.ts";
import { SvcError } from "../../kernel/errors.ts";
import type { LedgerHead } from "../../ledger/record.ts";
import { toKeyText } from "../key-text.ts";
import { type CheckpointPosition, readBase, writeBase } from "./checkpoint/checkpoint.ts";
import type { PreparedStatement, SqliteDatabase } from "./connection.ts";
import { type JournalDoc, slotText, type UnitBlock } from "./lines/block.ts";
import { writeSegments } from "./lines/segments.ts";
import { DocOverlay } from "./overlay.ts";
import { tableOf } from "./schema.ts";

/** A closed journal: its units, and the ledger position at its end. */
export interface ClosedJournal {
  generation: number;
  units: readonly UnitBlock[];
  head: LedgerHead;
  size: number;
  crc: number;
}

export function applyJournal(
  db: SqliteDatabase,
  store: string,
  generation: number,
  read: () => ClosedJournal,
): CheckpointPosition {
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

function take(db: SqliteDatabase, base: CheckpointPosition, journal: ClosedJournal): CheckpointPosition {
  const overlay = new DocOverlay(journal.generation);
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

type Doc = [table: TableName, key: string, slot: JournalDoc | null];

function groupByTable(overlay: DocOverlay): Map<TableName, Doc[]> {
  const groups = new Map<TableName, Doc[]>();
  for (const doc of overlay) {
    const group = groups.get(doc[0]);
    if (group === undefined) groups.set(doc[0], [doc]);
    else group.push(doc);
  }
  return groups;
}

function writeDocuments(db: SqliteDatabase, table: TableName, docs: Doc[]): void {
  const writer = new DocumentWriter(db, tableOf(table));
  const remove = db.prepare(`DELETE FROM ${tableOf(table)} WHERE key = ?`);
  // In tree order, so that neighboring rows are written together.
  docs.sort(([, a], [, b]) => (a < b ? -1 : a > b ? 1 : 0));
  for (const [, key, slot] of docs) {
    if (slot === null) remove.run(toKeyText(key));
    else writer.write(toKeyText(key), slot);
  }
}

class DocumentWriter {
  private readonly insert: PreparedStatement;
  private readonly update: PreparedStatement;
  private readonly replace: PreparedStatement;
  /** Whether the last document was new. If so, its neighbors in the tree are probably new, too. */
  private isNew = false;

  constructor(db: SqliteDatabase, name: string) {
    const insert = `INSERT INTO ${name} (key, owner, sort, tag, doc) VALUES (?, ?, ?, ?, ?) ON CONFLICT (key)`;
    this.insert = db.prepare(`${insert} DO NOTHING`);
    // Most changes keep owner, sort and tag, so this statement touches no index.
    this.update = db.prepare(
      `UPDATE ${name} SET doc = ? WHERE key = ? AND owner = ? AND sort = ? AND tag = ?`,
    );
    this.replace = db.prepare(
      `${insert} DO UPDATE SET owner = excluded.owner, sort = excluded.sort, tag = excluded.tag, doc = excluded.doc`,
    );
  }

  write(key: string, slot: JournalDoc): void {
    const text = slotText(slot);
    const owner = toKeyText(slot.owner);
    const tag = toKeyText(slot.tag);
    if (this.isNew && this.insert.run(key, owner, slot.sort, tag, text).changes > 0) return;
    this.isNew = false;
    if (this.update.run(text, key, owner, slot.sort, tag).changes > 0) return;
    this.isNew = true;
    this.replace.run(key, owner, slot.sort, tag, text);
  }
}
