/**
 * `svc.db`: the ledger, the journal of changed documents, and one row with the end of both. The checkpoint of the
 * working data is a separate database, because moving it takes longer than a decision can wait for the write lock.
 */
import { GENESIS_HASH } from "../../ledger/record.ts";
import type { SqliteDatabase } from "../journal/connection.ts";
import { newerSchema, versionOf } from "../journal/schema.ts";

/**
 * Since version 2, a journal can store a change of a document instead of the whole document. Older journals stay
 * readable.
 */
const SCHEMA = 2;

/**
 * A record can only follow the last one. Two bypasses are closed. REPLACE deletes without firing a delete trigger, so a
 * trigger rejects an insert over a record. A second record after the same one (a fork) would need a taken position.
 * UNIQUE (prev) would have the same effect, but with a tree of random keys whose cost grows with the ledger.
 */
const TABLES = `
  CREATE TABLE ledger (
    seq INTEGER PRIMARY KEY,
    prev TEXT NOT NULL,
    hash TEXT NOT NULL,
    line TEXT NOT NULL
  );
  CREATE TRIGGER ledger_keeps_records BEFORE UPDATE ON ledger
    BEGIN SELECT RAISE(ABORT, 'ledger is append-only'); END;
  CREATE TRIGGER ledger_loses_no_record BEFORE DELETE ON ledger
    BEGIN SELECT RAISE(ABORT, 'ledger is append-only'); END;
  CREATE TRIGGER ledger_replaces_no_record BEFORE INSERT ON ledger
    WHEN EXISTS (SELECT 1 FROM ledger WHERE seq >= NEW.seq)
    BEGIN SELECT RAISE(ABORT, 'ledger is append-only'); END;
  CREATE TRIGGER ledger_is_one_chain BEFORE INSERT ON ledger
    WHEN NEW.prev IS NOT CASE NEW.seq
      WHEN 0 THEN '${GENESIS_HASH}' ELSE (SELECT hash FROM ledger WHERE seq = NEW.seq - 1) END
    BEGIN SELECT RAISE(ABORT, 'ledger is append-only: prev must be unique, the hash of the last record'); END;

  CREATE TABLE journal (
    n INTEGER PRIMARY KEY,
    generation INTEGER NOT NULL,
    block TEXT NOT NULL
  );
  CREATE TABLE head (
    id INTEGER PRIMARY KEY CHECK (id = 0),
    n INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    records INTEGER NOT NULL,
    hash TEXT NOT NULL,
    size INTEGER NOT NULL,
    crc INTEGER NOT NULL
  );

  CREATE VIEW records AS SELECT seq,
    json_extract(line, '$.ts_ms') AS ts_ms, json_extract(line, '$.event') AS event,
    json_extract(line, '$.run_id') AS run_id, json_extract(line, '$.step') AS step,
    json_extract(line, '$.tool') AS tool, json_extract(line, '$.actor') AS actor,
    json_extract(line, '$.reason') AS reason, line FROM ledger;
`;

/** Migrates the database to this program's schema, in one transaction. Safe for two processes at once. */
export function migrateLedger(db: SqliteDatabase, file: string): void {
  const version = versionOf(db);
  if (version > SCHEMA) throw newerSchema(file, version, SCHEMA);
  if (version === SCHEMA) return;
  db.exec("BEGIN IMMEDIATE");
  try {
    if (versionOf(db) === 0) db.exec(TABLES);
    db.exec(`PRAGMA user_version = ${SCHEMA}`);
    db.exec("COMMIT");
  } catch (error) {
    if (db.isTransaction) db.exec("ROLLBACK");
    throw error;
  }
}
