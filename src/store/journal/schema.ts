/**
 * The checkpoint database: the documents at the end of a journal, an index of the ledger up to there, and one row that
 * names that journal and ledger position.
 */
import { hasTenants, TABLE_NAMES, type TableName } from "../../govern/port/tables.ts";
import { SvcError } from "../../kernel/errors.ts";
import type { SqliteDatabase } from "./connection.ts";

type ListIndex = "owner" | "tag" | "sort";

/**
 * The lists of each table that use an index. Each index costs every write, so a table has only the indexes that queries
 * need. Other lists are correct, too, but scan every row.
 */
export const LIST_INDEXES: Record<TableName, readonly ListIndex[]> = {
  meta: [],
  runs: ["owner", "tag", "sort"],
  child_runs: ["owner"],
  steps: ["owner"],
  payloads: [],
  run_tools: ["owner"],
  manifests: [],
  approvals: ["owner", "tag", "sort"],
  approval_values: ["owner"],
  approval_slots: [],
  halts: [],
  delegations: ["owner", "tag", "sort"],
  plans: ["owner", "tag", "sort"],
  grants: ["owner", "tag", "sort"],
  grant_buckets: [],
  grant_shapes: [],
  holds: ["tag", "sort"],
  counters: [],
  closings: ["owner", "sort"],
  touches: ["owner"],
  resource_calls: ["owner"],
  value_feeds: ["owner"],
  traces: ["owner"],
  trace_marks: ["owner"],
  tenant_traces: [],
  tenant_marks: ["owner"],
  tainted_stores: [],
  earlier_calls: ["owner"],
  idempotency: ["owner"],
  replies: ["owner", "sort"],
  leases: [],
  jobs: ["owner", "tag", "sort"],
  containments: ["tag", "sort"],
  incidents: ["owner", "tag", "sort"],
  incident_causes: ["owner"],
  incident_entries: ["owner"],
  drills: ["sort"],
  captures: ["owner", "tag", "sort"],
  pins: [],
  passkeys: [],
  challenges: ["owner", "sort"],
  upstream_consents: ["sort"],
  push_devices: [],
};

const INDEX_COLUMNS: Record<ListIndex, string> = {
  owner: "owner, sort, key",
  tag: "tag, sort, key",
  sort: "sort, key",
};

/** SQL for a document's tenant, as JSON text. */
export const TENANT_SQL = "(doc -> '$.tenant')";

export const tableOf = (table: TableName): string => `doc_${table}`;

const SCHEMA = 1;

const CORE = `
  CREATE TABLE checkpoint (
    id INTEGER PRIMARY KEY CHECK (id = 0),
    store TEXT NOT NULL,
    generation INTEGER NOT NULL,
    records INTEGER NOT NULL,
    hash TEXT NOT NULL,
    size INTEGER NOT NULL,
    crc INTEGER NOT NULL,
    events TEXT NOT NULL
  );
  CREATE TABLE segments (
    first_seq INTEGER PRIMARY KEY,
    records INTEGER NOT NULL,
    offset INTEGER NOT NULL,
    ts_min INTEGER NOT NULL,
    ts_max INTEGER NOT NULL,
    lengths BLOB NOT NULL
  );
  CREATE TABLE postings (
    field INTEGER NOT NULL,
    value TEXT NOT NULL,
    first_seq INTEGER NOT NULL,
    places BLOB NOT NULL,
    PRIMARY KEY (field, value, first_seq)
  ) WITHOUT ROWID;
`;

/** Migrates the database to this program's schema, in one transaction. Safe for two processes at once. */
export function migrateCheckpoint(db: SqliteDatabase, file: string): void {
  if (isCurrent(db, file)) return;
  db.exec("BEGIN IMMEDIATE");
  try {
    if (versionOf(db) === 0) db.exec(CORE);
    // Adds tables and indexes that a newer program introduced.
    for (const table of TABLE_NAMES) db.exec(documentTable(table));
    db.exec(`PRAGMA user_version = ${SCHEMA}`);
    db.exec("COMMIT");
  } catch (error) {
    if (db.isTransaction) db.exec("ROLLBACK");
    throw error;
  }
}

function isCurrent(db: SqliteDatabase, file: string): boolean {
  const version = versionOf(db);
  if (version > SCHEMA) throw newerSchema(file, version, SCHEMA);
  if (version < SCHEMA) return false;
  const present = new Set(
    db
      .prepare("SELECT name FROM sqlite_master")
      .all()
      .map((row: { name: string }) => row.name),
  );
  return TABLE_NAMES.every(
    (table) => present.has(tableOf(table)) && (!hasTenants(table) || present.has(tenantIndex(table))),
  );
}

export function versionOf(db: SqliteDatabase): number {
  return (db.prepare("PRAGMA user_version").get() as { user_version: number }).user_version;
}

export function newerSchema(file: string, found: number, known: number): SvcError {
  return new SvcError(
    "unavailable",
    `${file} was written by a newer svc (schema ${found}; this one knows ${known}): start that version instead`,
  );
}

const tenantIndex = (table: TableName): string => `${tableOf(table)}_tenant`;

function documentTable(table: TableName): string {
  const name = tableOf(table);
  const indexes = LIST_INDEXES[table].map(
    (index) => `CREATE INDEX IF NOT EXISTS ${name}_${index} ON ${name} (${INDEX_COLUMNS[index]});`,
  );
  if (hasTenants(table))
    indexes.push(`CREATE INDEX IF NOT EXISTS ${tenantIndex(table)} ON ${name} (${TENANT_SQL}, sort, key);`);
  // With a rowid: documents of about a kilobyte are slow in a WITHOUT ROWID tree (1.3 times).
  return `CREATE TABLE IF NOT EXISTS ${name} (
    key TEXT PRIMARY KEY NOT NULL, owner TEXT NOT NULL, sort INTEGER NOT NULL, tag TEXT NOT NULL, doc TEXT NOT NULL
  ); ${indexes.join(" ")}`;
}
