/**
 * Reads the checkpoint database. The checkpoint only moves from the end of one journal to the end of the next, in one
 * transaction, so its content was always true at some point. The overlays contain newer changes.
 */
import type { CountQuery, ListQuery } from "../../../govern/port/store.ts";
import type { TableName } from "../../../govern/port/tables.ts";
import { EMPTY_HEAD, type LedgerHead } from "../../../ledger/record.ts";
import { fromKeyText, toKeyText } from "../../key-text.ts";
import {
  closeDatabase,
  openDatabase,
  type PreparedStatement,
  type SqliteDatabase,
  sqliteFailure,
} from "../connection.ts";
import { SegmentReader } from "../lines/segments.ts";
import { LIST_INDEXES, migrateCheckpoint, TENANT_SQL, tableOf } from "../schema.ts";

/** The ledger position of the checkpoint, and the journal that ended there. */
export interface CheckpointPosition {
  generation: number;
  head: LedgerHead;
  size: number;
  /** The checksum of that journal's last block, from which the next journal continues. */
  crc: number;
  events: Record<string, number>;
}

export const EMPTY_CHECKPOINT: CheckpointPosition = {
  generation: 0,
  head: EMPTY_HEAD,
  size: 0,
  crc: 0,
  events: {},
};

interface BaseRow {
  store: string;
  generation: number;
  records: number;
  hash: string;
  size: number;
  crc: number;
  events: string;
}

export function readBase(db: SqliteDatabase): CheckpointPosition | undefined {
  const row = db.prepare("SELECT * FROM checkpoint").get() as BaseRow | undefined;
  if (row === undefined) return undefined;
  const { generation, records, hash, size, crc, events } = row;
  return { generation, head: { records, hash }, size, crc, events: JSON.parse(events) };
}

export function writeBase(
  db: SqliteDatabase,
  store: string,
  base: CheckpointPosition,
  when: "REPLACE" | "IGNORE" = "REPLACE",
): void {
  db.prepare(`INSERT OR ${when} INTO checkpoint VALUES (0, ?, ?, ?, ?, ?, ?, ?)`).run(
    store,
    base.generation,
    base.head.records,
    base.head.hash,
    base.size,
    base.crc,
    JSON.stringify(base.events),
  );
}

export interface BaseDocument {
  key: string;
  sort: number;
  text: string;
}

/** One ordered scan of a table. Every row meets all conditions. */
export interface TableScan {
  owner: string | undefined;
  tag: string | undefined;
  tenant: string | undefined;
  from: number | undefined;
  to: number | undefined;
  order: "asc" | "desc";
}

/** Number of documents that one statement reads. */
const KEYS_AT_ONCE = 1_000;

export class CheckpointReader {
  readonly path: string;
  readonly segments: SegmentReader;
  private readonly db: SqliteDatabase;
  private readonly statements = new Map<string, PreparedStatement>();
  private readonly gets = new Map<TableName, PreparedStatement>();
  private readonly beginRead: PreparedStatement;
  private readonly commit: PreparedStatement;
  private isTogether = false;

  private constructor(path: string, db: SqliteDatabase) {
    this.path = path;
    this.db = db;
    this.segments = new SegmentReader(db);
    this.beginRead = db.prepare("BEGIN");
    this.commit = db.prepare("COMMIT");
  }

  static open(path: string): CheckpointReader {
    const db = openDatabase(path, { synchronous: "FULL", autocheckpoint: false, cache_kib: 8_000 });
    try {
      migrateCheckpoint(db, path);
      return new CheckpointReader(path, db);
    } catch (error) {
      closeDatabase(db);
      throw error;
    }
  }

  base(): CheckpointPosition | undefined {
    return this.run(() => readBase(this.db));
  }

  /**
   * Creates the first, empty checkpoint. If another process has already created one, and perhaps moved it, that one
   * stays. Throws SQLite's own errors, so that the caller can retry.
   */
  begin(store: string): void {
    writeBase(this.db, store, EMPTY_CHECKPOINT, "IGNORE");
  }

  get(table: TableName, key: string): string | undefined {
    let statement = this.gets.get(table);
    if (statement === undefined) {
      statement = this.db.prepare(`SELECT doc FROM ${tableOf(table)} WHERE key = ?`);
      this.gets.set(table, statement);
    }
    const found = statement;
    this.startReads();
    return this.run(() => found.get(toKeyText(key)) as { doc: string } | undefined)?.doc;
  }

  /** The documents that exist, by key. */
  getMany(table: TableName, keys: readonly string[]): Map<string, string> {
    const found = new Map<string, string>();
    this.startReads();
    for (let from = 0; from < keys.length; from += KEYS_AT_ONCE) {
      const asked = JSON.stringify(keys.slice(from, from + KEYS_AT_ONCE).map(toKeyText));
      const sql = `SELECT key, doc FROM ${tableOf(table)} WHERE key IN (SELECT value FROM json_each(?))`;
      const rows = this.run(() => this.statement(sql).all(asked) as { key: string; doc: string }[]);
      for (const { key, doc } of rows) found.set(fromKeyText(key), doc);
    }
    return found;
  }

  private startReads(): void {
    if (this.isTogether && !this.db.isTransaction) this.run(() => this.beginRead.run());
  }

  isEmpty(table: TableName): boolean {
    return this.run(() => this.statement(`SELECT 1 FROM ${tableOf(table)} LIMIT 1`).get() === undefined);
  }

  /** Returns the next rows of a scan after `after`, in (`sort`, key) order. */
  page(table: TableName, walk: TableScan, after: ListQuery["after"], limit: number): BaseDocument[] {
    const where: string[] = [];
    const values: (string | number)[] = [];
    const add = (condition: string, ...given: (string | number)[]): void => {
      where.push(condition);
      values.push(...given);
    };
    if (walk.owner !== undefined) add("owner = ?", toKeyText(walk.owner));
    if (walk.tag !== undefined) add("tag = ?", toKeyText(walk.tag));
    if (walk.tenant !== undefined) add(`${TENANT_SQL} = ?`, JSON.stringify(walk.tenant));
    if (walk.from !== undefined) add("sort >= ?", walk.from);
    if (walk.to !== undefined) add("sort <= ?", walk.to);
    const [sign, direction] = walk.order === "desc" ? ["<", "DESC"] : [">", "ASC"];
    // Tables without an order have the same `sort` everywhere, so the key is the order.
    const plain = LIST_INDEXES[table].length === 0;
    if (after?.sort === 0 && plain) add(`key ${sign} ?`, toKeyText(after.key));
    else if (after !== undefined) add(`(sort, key) ${sign} (?, ?)`, after.sort, toKeyText(after.key));
    const condition = where.length === 0 ? "" : `WHERE ${where.join(" AND ")}`;
    const order = plain ? `key ${direction}` : `sort ${direction}, key ${direction}`;
    const sql = `SELECT key, sort, doc AS text FROM ${tableOf(table)} ${condition} ORDER BY ${order} LIMIT ?`;
    const rows = this.run(() => this.statement(sql).all(...values, limit) as BaseDocument[]);
    for (const row of rows) row.key = fromKeyText(row.key);
    return rows;
  }

  count(table: TableName, { owner, tag, tenant }: CountQuery): number {
    const asked = [
      ...(owner === undefined ? [] : [["owner", toKeyText(owner)] as const]),
      ...(tag === undefined ? [] : [["tag", toKeyText(tag)] as const]),
      ...(tenant === undefined ? [] : [[TENANT_SQL, JSON.stringify(tenant)] as const]),
    ];
    const where = asked.map(([column]) => `${column} = ?`).join(" AND ");
    const condition = where === "" ? "" : `WHERE ${where}`;
    const statement = this.statement(`SELECT count(*) AS n FROM ${tableOf(table)} ${condition}`);
    const values = asked.map(([, value]) => value);
    return this.run(() => (statement.get(...values) as { n: number }).n);
  }

  /** Returns owner and tag of the given keys that exist, optionally of one tenant only. */
  entries(
    table: TableName,
    keys: readonly string[],
    tenant: string | undefined,
  ): { owner: string; tag: string }[] {
    const whose = tenant === undefined ? "" : ` AND ${TENANT_SQL} = ?`;
    const sql = `SELECT owner, tag FROM ${tableOf(table)} WHERE key IN (SELECT value FROM json_each(?))${whose}`;
    const values = [
      JSON.stringify(keys.map(toKeyText)),
      ...(tenant === undefined ? [] : [JSON.stringify(tenant)]),
    ];
    const rows = this.run(() => this.statement(sql).all(...values) as { owner: string; tag: string }[]);
    return rows.map(({ owner, tag }) => ({ owner: fromKeyText(owner), tag: fromKeyText(tag) }));
  }

  /** Runs work whose reads, if any, share one read lock. */
  together(work: () => void): void {
    this.isTogether = true;
    try {
      work();
    } finally {
      this.isTogether = false;
      if (this.db.isTransaction) this.run(() => this.commit.run());
    }
  }

  /** Runs several reads of one snapshot. */
  snapshot<T>(work: () => T): T {
    this.run(() => this.db.exec("BEGIN"));
    try {
      return work();
    } finally {
      this.run(() => this.db.exec("COMMIT"));
    }
  }

  close(): void {
    closeDatabase(this.db);
  }

  private statement(sql: string): PreparedStatement {
    let statement = this.statements.get(sql);
    if (statement === undefined) {
      statement = this.db.prepare(sql);
      this.statements.set(sql, statement);
    }
    return statement;
  }

  private run<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw sqliteFailure(error, this.path);
    }
  }
}
