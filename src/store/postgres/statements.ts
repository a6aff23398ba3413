/**
 * The SQL of a batch, for a writer's connection: prepared once on a direct connection. The arrays keep the number of
 * statements constant, regardless of the number of units.
 */
export const NOTIFY_CHANNEL = "svc_changed";

/**
 * READ COMMITTED regardless of the default: each statement must see everything committed before the lock was granted.
 */
export const BEGIN_SQL = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";

/** Locks the head. Also returns the hash at the position of the newest acknowledged record, or null. */
export const LOCK_HEAD_SQL = {
  name: "svc_lock",
  text: `
    SELECT records, hash, events, pg_current_xact_id()::text AS xid,
      (SELECT l.hash FROM svc_ledger l WHERE l.seq = $1) AS acknowledged
    FROM svc_head WHERE one FOR UPDATE`,
};

export const FETCH_DOCS_SQL = {
  name: "svc_fetch",
  text: `
    SELECT n.at, d.doc FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS n(tbl, key, at)
    JOIN svc_docs d ON d.tbl = n.tbl AND d.key = n.key`,
};

/** Fetches documents with their versions: the id of the transaction that wrote each. */
export const FETCH_VERSIONS_SQL = {
  name: "svc_fetch_versions",
  text: `
    SELECT n.at, d.doc, d.xmin::text FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS n(tbl, key, at)
    JOIN svc_docs d ON d.tbl = n.tbl AND d.key = n.key`,
};

/** Returns the current documents whose version differs from the one read before. */
export const CHANGED_DOCS_SQL = {
  name: "svc_changed_facts",
  text: `
    SELECT n.at, d.doc FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS n(tbl, key, version, at)
    LEFT JOIN svc_docs d ON d.tbl = n.tbl AND d.key = n.key WHERE d.xmin::text IS DISTINCT FROM n.version`,
};

export const APPEND_RECORDS_SQL = {
  name: "svc_append",
  text: `
    INSERT INTO svc_ledger (seq, prev, hash, line, run_id, event, actor, tool, ts_ms)
    SELECT $1::bigint + at - 1, prev, hash, line, run_id, event, actor, tool, ts_ms
    FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bigint[])
      WITH ORDINALITY AS n(prev, hash, line, run_id, event, actor, tool, ts_ms, at)`,
};

const DOC_ROWS =
  "unnest($1::text[], $2::text[], $3::text[], $4::double precision[], $5::text[], $6::text[], $7::text[])";

/** Writes documents that the database may have. Logs more than the next two: a row lock, or a confirmed insert. */
export const PUT_DOCS_SQL = {
  name: "svc_put",
  text: `
    INSERT INTO svc_docs (tbl, key, owner, sort, tag, doc, tenant) SELECT * FROM ${DOC_ROWS}
    ON CONFLICT (tbl, key) DO UPDATE
    SET owner = excluded.owner, sort = excluded.sort, tag = excluded.tag, doc = excluded.doc, tenant = excluded.tenant`,
};

/** Adds documents that the database does not have. */
export const ADD_DOCS_SQL = {
  name: "svc_add",
  text: `INSERT INTO svc_docs (tbl, key, owner, sort, tag, doc, tenant) SELECT * FROM ${DOC_ROWS}`,
};

/** Changes documents that the database has. Fails if one is missing. */
export const CHANGE_DOCS_SQL = {
  name: "svc_change",
  text: `
    WITH changed AS (
      UPDATE svc_docs d SET owner = n.owner, sort = n.sort, tag = n.tag, doc = n.doc, tenant = n.tenant
      FROM ${DOC_ROWS} AS n(tbl, key, owner, sort, tag, doc, tenant)
      WHERE d.tbl = n.tbl AND d.key = n.key RETURNING 1)
    SELECT 1 / (count(*) = cardinality($1::text[]))::int FROM changed`,
};

export const REMOVE_DOCS_SQL = {
  name: "svc_remove",
  text: `
    DELETE FROM svc_docs d USING unnest($1::text[], $2::text[]) AS n(tbl, key)
    WHERE d.tbl = n.tbl AND d.key = n.key`,
};

/**
 * Moves the head, records the chain position of this time, and notifies the other processes. Takes effect at commit.
 */
export const ADVANCE_HEAD_SQL = {
  name: "svc_advance",
  text: `
    WITH t AS (
      INSERT INTO svc_times (slot, first_seq, last_seq)
      SELECT * FROM unnest($4::bigint[], $5::bigint[], $6::bigint[])
      ON CONFLICT (slot) DO UPDATE SET last_seq = excluded.last_seq)
    UPDATE svc_head SET records = $1, hash = $2, events = $3 WHERE one
    RETURNING pg_notify('${NOTIFY_CHANNEL}', '')`,
};

export const FIND_RECORD_SQL = {
  name: "svc_landed_record",
  text: "SELECT EXISTS (SELECT FROM svc_ledger WHERE seq = $1 AND hash = $2) AS yes",
};

export const FIND_TRANSACTION_SQL = {
  name: "svc_landed_transaction",
  text: "SELECT pg_xact_status($1::xid8) = 'committed' AS yes",
};
