/**
 * Reading the checkpoint database. It only ever moves from the end of one journal to the end of the
 * next, in one transaction, so whatever is read from it was true; the overlays say what is newer.
 */
import { EMPTY_HEAD, type Head } from "../../ledger/record.ts";
import type { CountQuery, ListQuery } from "../../port/store.ts";
import type { TableName } from "../../port/tables.ts";
import { fromText, toText } from "../key-text.ts";
import {
  closeDatabase,
  type Database,
  openDatabase,
  type PreparedStatement,
  sqliteFailure,
} from "./connection.ts";
import { LIST_INDEXES, migrateCheckpoint, TENANT, tableOf } from "./schema.ts";
import { SegmentReader } from "./segments.ts";

/** The ledger position that the checkpoint reflects, and the journal that ended there. */
export interface Base {
  generation: number;
  head: Head;
  size: number;
  /** Checksum of that journal's last block: the next journal carries on from it. */
  crc: number;
  events: Record<string, number>;
}

export const EMPTY_BASE: Base = { generation: 0, head: EMPTY_HEAD, size: 0, crc: 0, events: {} };

interface BaseRow {
  store: string;
  generation: number;
  records: number;
  hash: string;
  size: number;
  crc: number;
  events: string;
}

export function readBase(db: Database): Base | undefined {
  const row = db.prepare("SELECT * FROM checkpoint").get() as BaseRow | undefined;
  if (row === undefined) return undefined;
  const { generation, records, hash, size, crc, events } = row;
  return { generation, head: { records, hash }, size, crc, events: JSON.parse(events) };
}

export function writeBase(
  db: Database,
  store: string,
  base: Base,
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

/** One ordered walk over a table: all conditions hold for every row. */
export interface Walk {
  owner: string | undefined;
  tag: string | undefined;
  tenant: string | undefined;
  from: number | undefined;
  to: number | undefined;
  order: "asc" | "desc";
}

export class Checkpoint {
  readonly path: string;
  readonly segments: SegmentReader;
  private readonly db: Database;
  private readonly statements = new Map<string, PreparedStatement>();
  private readonly gets = new Map<TableName, PreparedStatement>();
  private readonly beginRead: PreparedStatement;
  private readonly commit: PreparedStatement;
  private isTogether = false;

  private constructor(path: string, db: Database) {
    this.path = path;
    this.db = db;
    this.segments = new SegmentReader(db);
    this.beginRead = db.prepare("BEGIN");
    this.commit = db.prepare("COMMIT");
  }

  static open(path: string): Checkpoint {
    const db = openDatabase(path, { synchronous: "FULL", autocheckpoint: false, cache_kib: 8_000 });
    try {
      migrateCheckpoint(db, path);
      return new Checkpoint(path, db);
    } catch (error) {
      closeDatabase(db);
      throw error;
    }
  }

  base(): Base | undefined {
    return this.run(() => readBase(this.db));
  }

  /**
   * The very first checkpoint: of nothing. Where another process has made it meanwhile, and perhaps moved on,
   * that one stays. Errors are SQLite's own, for whoever tries again.
   */
  begin(store: string): void {
    writeBase(this.db, store, EMPTY_BASE, "IGNORE");
  }

  get(table: TableName, key: string): string | undefined {
    let statement = this.gets.get(table);
    if (statement === undefined) {
      statement = this.db.prepare(`SELECT doc FROM ${tableOf(table)} WHERE key = ?`);
      this.gets.set(table, statement);
    }
    const found = statement;
    if (this.isTogether && !this.db.isTransaction) this.run(() => this.beginRead.run());
    return this.run(() => found.get(toText(key)) as { doc: string } | undefined)?.doc;
  }

  isEmpty(table: TableName): boolean {
    return this.run(() => this.statement(`SELECT 1 FROM ${tableOf(table)} LIMIT 1`).get() === undefined);
  }

  /** The next rows of a walk, in (`sort`, key) order, behind `after`. */
  page(table: TableName, walk: Walk, after: ListQuery["after"], limit: number): BaseDocument[] {
    const where: string[] = [];
    const values: (string | number)[] = [];
    const add = (condition: string, ...given: (string | number)[]): void => {
      where.push(condition);
      values.push(...given);
    };
    if (walk.owner !== undefined) add("owner = ?", toText(walk.owner));
    if (walk.tag !== undefined) add("tag = ?", toText(walk.tag));
    if (walk.tenant !== undefined) add(`${TENANT} = ?`, JSON.stringify(walk.tenant));
    if (walk.from !== undefined) add("sort >= ?", walk.from);
    if (walk.to !== undefined) add("sort <= ?", walk.to);
    const [sign, direction] = walk.order === "desc" ? ["<", "DESC"] : [">", "ASC"];
    // Tables that keep no order of their own have the same `sort` everywhere: the key is the order.
    const plain = LIST_INDEXES[table].length === 0;
    if (after?.sort === 0 && plain) add(`key ${sign} ?`, toText(after.key));
    else if (after !== undefined) add(`(sort, key) ${sign} (?, ?)`, after.sort, toText(after.key));
    const condition = where.length === 0 ? "" : `WHERE ${where.join(" AND ")}`;
    const order = plain ? `key ${direction}` : `sort ${direction}, key ${direction}`;
    const sql = `SELECT key, sort, doc AS text FROM ${tableOf(table)} ${condition} ORDER BY ${order} LIMIT ?`;
    const rows = this.run(() => this.statement(sql).all(...values, limit) as BaseDocument[]);
    for (const row of rows) row.key = fromText(row.key);
    return rows;
  }

  count(table: TableName, { owner, tag, tenant }: CountQuery): number {
    const asked = [
      ...(owner === undefined ? [] : [["owner", toText(owner)] as const]),
      ...(tag === undefined ? [] : [["tag", toText(tag)] as const]),
      ...(tenant === undefined ? [] : [[TENANT, JSON.stringify(tenant)] as const]),
    ];
    const where = asked.map(([column]) => `${column} = ?`).join(" AND ");
    const condition = where === "" ? "" : `WHERE ${where}`;
    const statement = this.statement(`SELECT count(*) AS n FROM ${tableOf(table)} ${condition}`);
    const values = asked.map(([, value]) => value);
    return this.run(() => (statement.get(...values) as { n: number }).n);
  }

  /** Owner and tag of those of the keys that the table has, of one tenant where one is given. */
  entries(
    table: TableName,
    keys: readonly string[],
    tenant: string | undefined,
  ): { owner: string; tag: string }[] {
    const whose = tenant === undefined ? "" : ` AND ${TENANT} = ?`;
    const sql = `SELECT owner, tag FROM ${tableOf(table)} WHERE key IN (SELECT value FROM json_each(?))${whose}`;
    const values = [
      JSON.stringify(keys.map(toText)),
      ...(tenant === undefined ? [] : [JSON.stringify(tenant)]),
    ];
    const rows = this.run(() => this.statement(sql).all(...values) as { owner: string; tag: string }[]);
    return rows.map(({ owner, tag }) => ({ owner: fromText(owner), tag: fromText(tag) }));
  }

  /** Work whose looks, if there are any, take the read lock once. */
  together(work: () => void): void {
    this.isTogether = true;
    try {
      work();
    } finally {
      this.isTogether = false;
      if (this.db.isTransaction) this.run(() => this.commit.run());
    }
  }

  /** Several reads of one moment. */
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
