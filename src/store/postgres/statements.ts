/**
 * The SQL of a batch. All of it runs on a writer's connection, prepared once and kept where it is ours alone; the arrays are
 * why a batch costs the same few statements however many units it holds.
 */
export const CHANNEL = "svc_changed";

/** Each statement must see all that was committed before the lock was granted: READ COMMITTED, whatever the default. */
export const BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";

/** Takes the head; `told` is the hash of the record that this process has told of, or null where it is not there. */
export const LOCK = {
  name: "svc_lock",
  text: `
    SELECT records, hash, events, pg_current_xact_id()::text AS xid,
      (SELECT l.hash FROM svc_ledger l WHERE l.seq = $1) AS told
    FROM svc_head WHERE one FOR UPDATE`,
};

export const FETCH = {
  name: "svc_fetch",
  text: `
    SELECT n.at, d.doc FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS n(tbl, key, at)
    JOIN svc_docs d ON d.tbl = n.tbl AND d.key = n.key`,
};

/** The same, with the version of each: the transaction that wrote it. */
export const FETCH_VERSIONS = {
  name: "svc_fetch_versions",
  text: `
    SELECT n.at, d.doc, d.xmin::text FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS n(tbl, key, at)
    JOIN svc_docs d ON d.tbl = n.tbl AND d.key = n.key`,
};

/** Of what was read, all that has another version by now, as it is now. */
export const CHANGED = {
  name: "svc_changed_facts",
  text: `
    SELECT n.at, d.doc FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS n(tbl, key, version, at)
    LEFT JOIN svc_docs d ON d.tbl = n.tbl AND d.key = n.key WHERE d.xmin::text IS DISTINCT FROM n.version`,
};

export const APPEND = {
  name: "svc_append",
  text: `
    INSERT INTO svc_ledger (seq, prev, hash, line, run_id, event, actor, tool, ts_ms)
    SELECT $1::bigint + at - 1, prev, hash, line, run_id, event, actor, tool, ts_ms
    FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bigint[])
      WITH ORDINALITY AS n(prev, hash, line, run_id, event, actor, tool, ts_ms, at)`,
};

export const PUT = {
  name: "svc_put",
  text: `
    INSERT INTO svc_docs (tbl, key, owner, sort, tag, doc, tenant)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::double precision[], $5::text[], $6::text[], $7::text[])
    ON CONFLICT (tbl, key) DO UPDATE
    SET owner = excluded.owner, sort = excluded.sort, tag = excluded.tag, doc = excluded.doc, tenant = excluded.tenant`,
};

export const REMOVE = {
  name: "svc_remove",
  text: `
    DELETE FROM svc_docs d USING unnest($1::text[], $2::text[]) AS n(tbl, key)
    WHERE d.tbl = n.tbl AND d.key = n.key`,
};

/** Moves the head on, notes where in the chain this time lies, and tells the other processes, all at commit. */
export const ADVANCE = {
  name: "svc_advance",
  text: `
    WITH t AS (
      INSERT INTO svc_times (slot, first_seq, last_seq)
      SELECT * FROM unnest($4::bigint[], $5::bigint[], $6::bigint[])
      ON CONFLICT (slot) DO UPDATE SET last_seq = excluded.last_seq)
    UPDATE svc_head SET records = $1, hash = $2, events = $3 WHERE one
    RETURNING pg_notify('${CHANNEL}', '')`,
};

export const LANDED_RECORD = {
  name: "svc_landed_record",
  text: "SELECT EXISTS (SELECT FROM svc_ledger WHERE seq = $1 AND hash = $2) AS yes",
};

export const LANDED_TRANSACTION = {
  name: "svc_landed_transaction",
  text: "SELECT pg_xact_status($1::xid8) = 'committed' AS yes",
};
